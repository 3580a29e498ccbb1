"""Tables by opendp's MST on given cells, a record added or removed."""

import json
import platform
import sys
import time
import warnings
from importlib.metadata import version

import numpy as np
import opendp.prelude as dp
import polars as pl

#: Of what the budget is spent on, its default is 0.9: the sum of its parts is then more
#: than the whole by a rounding, and nothing is released.
_MEASURED = 0.875


def rho_of(epsilon, delta):
    """Largest rho of zero-concentrated privacy within (epsilon, delta).

    By the conversion of Canonne, Kamath and Steinke (2020), Proposition 12.
    """
    orders = 1 + np.logspace(-2, 4, 10_000)

    def reached(rho):
        loss = (orders - 1) * (orders * rho - epsilon) - np.log(orders - 1)
        return np.exp(np.min(loss + orders * np.log1p(-1 / orders)))

    low, high = 0.0, epsilon
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if reached(middle) <= delta else (low, middle)
    return low


def released(codes, n_cells, epsilon, delta):
    """Return the released table of all columns, and the seconds it took."""
    names = [f"c{k}" for k in range(codes.shape[1])]
    table = pl.LazyFrame({name: codes[:, k] for k, name in enumerate(names)})
    rho = rho_of(epsilon, delta)
    start = time.process_time()
    context = dp.Context.compositor(
        data=table,
        privacy_unit=dp.unit_of(contributions=1),
        privacy_loss=dp.loss_of(rho=rho),
    )
    keys = {name: list(range(n)) for name, n in zip(names, n_cells, strict=True)}
    algorithm = dp.mbi.MST(measure_split=_MEASURED)
    query = context.query(rho=rho).select(*names)
    found = query.contingency_table(keys=keys, algorithm=algorithm).release()
    return found, time.process_time() - start


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    dp.enable_features("contrib")
    with np.load(sys.argv[1]) as stored:
        codes, n_cells = stored["codes"], stored["n_cells"].tolist()
    options = json.loads(sys.argv[2])
    rows = []
    for epsilon in options["epsilons"]:
        found, seconds = released(codes, n_cells, epsilon, options["delta"])
        for method in ("sample", "round"):
            made = found.synthesize(method=method).to_numpy().astype(np.uint16)
            path = f"{options['folder']}/{method}-{epsilon}.npy"
            np.save(path, made)
            row = {"epsilon": epsilon, "method": method, "path": path}
            rows.append(row | {"cpu_seconds": seconds})
    answer = {
        "versions": {
            "python": platform.python_version(),
            "numpy": version("numpy"),
            "peer": version("opendp"),
        },
        "rows": rows,
    }
    print(json.dumps(answer))
