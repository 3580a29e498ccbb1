"""What is no certificate is refused by the name of the field, and nothing is run."""

import copy
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skpuffer.certificate import CertificateFileError, check, schema
from skpuffer.certificate.__main__ import main
from skpuffer.certificate._check import DEEPEST, LARGEST
from skpuffer.certificate._structure import check_structure
from skpuffer.exceptions import stated
from skpuffer.privacy._written import digest_of_plain

from .certificates import CERTIFICATES, data_of


def written(tmp_path, text):
    file = tmp_path / "certificate.json"
    file.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8"))
    return file


def plain(name="composed"):
    return copy.deepcopy(data_of(name))


def signed(changed):
    changed = {k: v for k, v in changed.items() if k != "digest"}
    return changed | {"digest": digest_of_plain(changed)}


def text(**changes):
    return json.dumps(plain() | changes)


def put(token, field="epsilon"):
    """The text of a certificate with something else for a number."""
    return text(**{field: "@"}).replace('"@"', token)


DEEP = "[" * 5000 + "]" * 5000

CASES = {
    "empty": ("", "no JSON"),
    "truncated": (text()[:500], "no JSON.*line 1"),
    "binary": (b"\x80\x04\x95pickle", "no text in UTF-8: byte 0"),
    "list": ("[1, 2]", "certificate must be of the type object"),
    "number": ("3", "certificate must be of the type object"),
    "NaN": (put("NaN"), r"certificate.epsilon is not valid: NaN"),
    "Infinity": (put("Infinity", "delta"), r"certificate.delta is not valid: Infinity"),
    "-Infinity": (put("-Infinity"), "certificate.epsilon is not valid"),
    "too large": (put("1e999"), "certificate.epsilon is not valid: it is too large"),
    "very long": (put("9" * 5000), "certificate.epsilon is not valid: it is too large"),
    "wrong integer": (
        put("1e3", "n_releases").replace("1e3", "1.5"),
        "n_releases must",
    ),
    "deep": (put(DEEP), f"nested more than {DEEPEST} deep"),
    "very deep": (put("[" * 100_000), "nested more than|no JSON"),
    "deep object": (put('{"a":' * 60 + "1" + "}" * 60), "nested more than"),
    "twice": (
        text()[:-1] + ', "epsilon": 0.1}',
        "certificate.epsilon.*stands there twice",
    ),
    "other schema": (text(schema="mine"), "certificate.schema must be"),
    "version 1": (text(version=1), "certificate.version must be 5.*from_dict"),
    "version 2": (text(version=2), "certificate.version must be 5"),
    "version true": (text(version=True), "certificate.version"),
    "notion": (text(notion="my_dp"), "certificate.notion must be one of"),
    "unknown field": (
        text(since=2),
        "certificate has fields that are not known: 'since'",
    ),
    "missing": (
        json.dumps({k: v for k, v in plain().items() if k != "delta"}),
        "certificate misses the fields 'delta'",
    ),
    "wrong type": (text(epsilon="one"), "certificate.epsilon must"),
    "text for boolean": (
        text(composable="yes"),
        "composable must be of the type boolean",
    ),
    "boolean for number": (
        text(delta=True),
        "certificate.delta must be of the type number",
    ),
    "negative": (text(epsilon=-1.0), "certificate.epsilon must be at least 0"),
    "probability": (text(delta=1.5), "certificate.delta must be at most 1"),
    "order": (text(alpha=1), "certificate.alpha must be above 1"),
    "curve": (
        text(curve={"kind": "os.system", "mu": 1}),
        "certificate.curve.kind must be",
    ),
    "curve of no kind": (text(curve={}), "certificate.curve.kind must be one of"),
    "curve of list kind": (text(curve={"kind": []}), "certificate.curve.kind must be"),
    "curve's field": (
        text(curve={"kind": "gaussian", "sigma": 1}),
        "curve misses.*'mu'",
    ),
    "curve's extra": (
        text(curve={"kind": "gaussian", "mu": 1, "__class__": "x"}),
        "curve has fields that are not known: '__class__'",
    ),
    "event": (text(events=[[1, 2, 3]]), r"certificate.events\[0\]\[0\] must"),
    "three of two": (
        text(events=[[plain()["events"][0][0], 1, 1]]),
        r"certificate.events\[0\]\[2\] is more than",
    ),
    "none of count": (
        text(events=[[plain()["events"][0][0], 0]]),
        r"\[1\] must be at least",
    ),
    "empty array": (text(events=[]), "certificate.events must have at least 1"),
    "digest": (text(epsilon=0.5), "certificate.digest is not that of the data"),
    "no digest": (text(digest="sha256:0"), "certificate.digest must match"),
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_no_certificate_is_refused_by_name(name, tmp_path, capsys):
    given_text, words = CASES[name]
    file = written(tmp_path, given_text)
    with pytest.raises(CertificateFileError, match=words) as caught:
        check(file)
    assert len(str(caught.value)) < 600
    assert main([str(file)]) == 2
    printed = capsys.readouterr()
    assert printed.out == "" and "Traceback" not in printed.err


def test_large_files_are_not_read(tmp_path):
    with pytest.raises(CertificateFileError, match=f"larger than {LARGEST} bytes"):
        check(written(tmp_path, " " * (LARGEST + 1)))
    with pytest.raises(FileNotFoundError):
        check(tmp_path / "missing.json")
    assert main([str(tmp_path / "missing.json")]) == 2
    assert main([str(tmp_path)]) == 2


def test_the_command_says_it_by_its_exit(tmp_path, capsys):
    file = written(tmp_path, text())
    assert main([str(file)]) == 0
    assert "follows from what is stated" in capsys.readouterr().out
    forged = written(tmp_path, json.dumps(signed(plain() | {"epsilon": 0.5})))
    assert main([str(forged), "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert not told["follows"]
    wrong = [f["field"] for f in told["findings"] if f["state"] == "does not follow"]
    assert "epsilon" in wrong
    unknown = written(tmp_path, json.dumps(plain("parallel")))
    assert main([str(unknown)]) == 3
    assert "NOT CONFIRMED" in capsys.readouterr().out
    assert main(["--schema"]) == 0
    assert json.loads(capsys.readouterr().out) == schema()
    with pytest.raises(SystemExit):
        main([])


def test_nothing_in_a_file_steers_a_terminal(tmp_path, capsys):
    text_of = ["\x1b[2J\x1b[31mall is well", "\ud800", "line\nbreak"]
    said = [stated(text).to_dict() for text in text_of]
    file = written(tmp_path, json.dumps(signed(plain() | {"assumptions": said})))
    assert main([str(file)]) == 0
    out = capsys.readouterr().out
    assert "\x1b" not in out and "\\x1b[2J" in out and "line\\nbreak" in out


def error_of(data):
    """What the structure of data is refused for, if it is."""
    try:
        check_structure(data)
    except CertificateFileError as error:
        return str(error)
    return None


#: Numbers that mean nothing, in every place where there is one.
ABSURD = (0, 1e-300, 1e300, 2**53, 1e9)


@pytest.mark.parametrize("name", ["composed", "subset", "believed", "lengths only"])
@pytest.mark.parametrize("value", ABSURD)
def test_absurd_numbers_end_in_a_finding(name, value):
    from skpuffer.certificate._check import _numbers, _setter
    from skpuffer.certificate._rules import findings_of

    data = plain(name)
    for path, old, set_to in _numbers(data, "", _setter([data], 0)):
        set_to([value] if isinstance(old, list) else value)
        error = error_of(data)
        if error is None:
            assert findings_of(data)
        else:
            assert path.partition(".")[0].partition("[")[0] in error
        set_to(old)


JSON = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False) | st.integers() | st.text(),
    lambda part: (
        st.lists(part, max_size=3) | st.dictionaries(st.text(), part, max_size=3)
    ),
    max_leaves=8,
)


@given(
    name=st.sampled_from(["composed", "subset", "lengths only", "side by side"]),
    path=st.lists(st.integers(0, 40), min_size=1, max_size=7),
    value=JSON,
)
def test_anything_anywhere_is_refused_or_has_the_structure(name, path, value):
    """And the published schema says the same of it as what reads it here."""
    data = plain(name)
    _replace(data, path, value)
    error = error_of(data)
    assert error is None or error.startswith("certificate")
    library = pytest.importorskip("jsonschema")
    valid = library.Draft202012Validator(schema()).is_valid(data)
    assert valid == (error is None), error


def _replace(holder, path, value):
    """Put something where a path of numbers leads to."""
    for at in path:
        keys = list(holder) if isinstance(holder, dict) else range(len(holder))
        if not keys:
            return
        key = list(keys)[at % len(keys)]
        if not isinstance(holder[key], dict | list) or at is path[-1]:
            holder[key] = value
            return
        holder = holder[key]


def test_the_schema_is_one_and_takes_every_certificate():
    library = pytest.importorskip("jsonschema")
    library.Draft202012Validator.check_schema(schema())
    valid = library.Draft202012Validator(schema())
    for name in CERTIFICATES:
        assert valid.is_valid(data_of(name)), name
