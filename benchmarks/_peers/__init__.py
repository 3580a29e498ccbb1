"""Peers, each run by the interpreter of its own environment on our arrays.

A peer may need another scikit-learn than ours, so it is never imported here. A script
of this folder gets the path of an ``.npz`` file (``X_train``, ``y_train``, ``X_test``,
``y_test``) and a JSON object of options, and prints a JSON object: ``versions``, and
``rows`` of ``setting``, ``epsilon``, ``accuracy`` and ``cpu_seconds``.
"""

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np


@dataclass(frozen=True)
class Peer:
    """A script of this folder, and what its promise is.

    Parameters
    ----------
    name : str
        How the peer is called in tables.
    variable : str
        Environment variable that names the interpreter of its environment.
    script : str
        File name of the script.
    relation : str
        Neighbouring tables of the peer's promise.
    pure : bool
        Whether the promise has no delta.
    """

    name: str
    variable: str
    script: str
    relation: str
    pure: bool

    @property
    def interpreter(self):
        """Path of the interpreter, or None if there is none."""
        path = os.environ.get(self.variable)
        return path if path and Path(path).is_file() else None

    def measure(self, split, timeout=None, **options):
        """Run the script on the arrays of one seed and return what it prints.

        None is returned where it has not answered after so many seconds.
        """
        with TemporaryDirectory() as folder:
            arrays = Path(folder) / "split.npz"
            np.savez(arrays, **vars(split))
            command = [
                self.interpreter,
                str(Path(__file__).parent / self.script),
                str(arrays),
                json.dumps(options),
            ]
            try:
                answer = subprocess.run(
                    command,
                    check=True,
                    stdout=subprocess.PIPE,
                    text=True,
                    timeout=timeout,
                    # the peers' CPU time is that of one thread, like ours
                    env={
                        **os.environ,
                        "OMP_NUM_THREADS": "1",
                        "OPENBLAS_NUM_THREADS": "1",
                    },
                )
            except subprocess.TimeoutExpired:
                return None
        return json.loads(answer.stdout)


DP_EBM = Peer(
    name="interpret",
    variable="SKPUFFER_INTERPRET_PYTHON",
    script="interpret_ebm.py",
    relation="add_remove",
    pure=False,
)

PEERS = (
    Peer(
        name="diffprivlib",
        variable="SKPUFFER_DIFFPRIVLIB_PYTHON",
        script="diffprivlib_logistic.py",
        relation="replace",  # Chaudhuri et al. (2011), Definition 1
        pure=True,
    ),
    Peer(
        name="opacus",
        variable="SKPUFFER_OPACUS_PYTHON",
        script="opacus_linear.py",
        relation="add_remove",
        pure=False,
    ),
)
