"""What runs on private rows says nothing, and gives the floor back."""

import logging
import sys
import threading
import warnings

import pytest
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA
from sklearn.ensemble import VotingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from skpuffer.utils import _silence
from skpuffer.utils._silence import muted, silence


class Listener:
    def setup(self, estimator, context): ...

    def teardown(self, estimator, context): ...

    def on_fit_task_begin(self, estimator, context): ...

    def on_fit_task_end(self, estimator, context): ...


def test_every_verbose_parameter_is_off_and_nothing_else_changes():
    columns = make_column_transformer(
        (StandardScaler(), [0]), verbose=True, verbose_feature_names_out=True
    )
    voting = VotingClassifier([("sgd", SGDClassifier(verbose=3, alpha=0.5))])
    model = Pipeline([("columns", columns), ("voting", voting)], verbose=True)
    before = repr(model)
    quiet = muted(model).get_params(deep=True)
    off = [name for name in quiet if name.rpartition("__")[2] == "verbose"]
    assert len(off) == 4
    assert not any(quiet[name] for name in off)
    assert quiet["columns__verbose_feature_names_out"] is True
    assert quiet["voting__sgd__alpha"] == 0.5
    assert repr(model) == before


def test_the_frozen_are_shared_and_left_alone():
    inner = LogisticRegression(verbose=1).set_callbacks(Listener())
    frozen = FrozenEstimator(inner)
    quiet = muted(make_pipeline(PCA(), frozen))
    assert quiet[-1] is frozen
    assert inner.verbose == 1 and inner._skl_callbacks


def test_listeners_stay_with_the_original():
    inner = LogisticRegression().set_callbacks(Listener())
    assert not hasattr(muted(inner), "_skl_callbacks")
    assert len(inner._skl_callbacks) == 1


def test_threads_that_are_silent_together_end_it_together(capsys):
    begun, done = threading.Event(), threading.Event()

    def first():
        with silence():
            begun.set()
            done.wait()

    out, thread = sys.stdout, threading.Thread(target=first)
    thread.start()
    begun.wait()
    with silence():
        done.set()
        thread.join()
        print("still silent")
        warnings.warn("still silent", RuntimeWarning, stacklevel=1)
    assert sys.stdout is out
    print("heard")
    assert capsys.readouterr().out == "heard\n"
    with pytest.warns(RuntimeWarning, match="heard"):
        warnings.warn("heard", RuntimeWarning, stacklevel=1)


def test_an_error_ends_the_silence(capsys):
    with pytest.raises(ZeroDivisionError), silence():
        raise ZeroDivisionError
    print("heard")
    assert capsys.readouterr().out == "heard\n"


def test_what_is_nested_runs_in_this_process():
    # worker processes know nothing of a silence that is kept here
    model = make_pipeline(OneVsRestClassifier(SGDClassifier(n_jobs=3), n_jobs=-1))
    quiet = muted(model).get_params(deep=True)
    jobs = [value for name, value in quiet.items() if name.endswith("n_jobs")]
    assert jobs == [1, 1]


def _interrupted(at):
    """Interrupt a silence at the moment of that number; whether there was one.

    An interrupt is looked for as a function begins, and after each call.
    """
    left = at

    def moment(frame, event, _):
        nonlocal left
        if event == "return":  # to whoever called
            frame = frame.f_back
        ours = frame.f_code.co_filename == _silence.__file__
        if ours and event in ("call", "return", "c_return"):
            if left == 0:
                sys.setprofile(None)
                raise KeyboardInterrupt
            left -= 1

    sys.setprofile(moment)
    try:
        with silence():
            pass
    except KeyboardInterrupt:
        return True
    finally:
        sys.setprofile(None)
    return False


# opened for nothing, where the interrupt comes before it is kept
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_no_interrupt_leaves_the_process_mute(capsys):
    out, err, filters = sys.stdout, sys.stderr, list(warnings.filters)
    disabled, at = logging.root.manager.disable, 0
    while _interrupted(at):
        assert (sys.stdout, sys.stderr) == (out, err), at
        assert list(warnings.filters) == filters, at
        assert logging.root.manager.disable == disabled, at
        assert _silence._SHARED.before is None, at
        print("heard")
        assert capsys.readouterr().out == "heard\n", at
        at += 1
    assert at > 10
