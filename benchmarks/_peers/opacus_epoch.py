"""One epoch of logistic regression by Opacus, in normal use, on given arrays.

Takes the path of an ``.npz`` file (``X``, ``y``) and the batch size, and prints a JSON
object of ``version`` and ``cpu_seconds``, a list with one entry for each epoch.
"""

import json
import sys
import time
import warnings
from importlib.metadata import version

import numpy as np
import torch
from opacus import PrivacyEngine
from torch.utils.data import DataLoader, TensorDataset

EPOCHS = 3


def measure(X, y, batch_size):
    torch.manual_seed(0)
    model = torch.nn.Linear(X.shape[1], 1, bias=False)
    model, optimizer, loader = PrivacyEngine().make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=1.0),
        data_loader=DataLoader(
            TensorDataset(torch.as_tensor(X), torch.as_tensor(y)), batch_size=batch_size
        ),
        noise_multiplier=1.0,
        max_grad_norm=1.0,
    )
    loss = torch.nn.BCEWithLogitsLoss()
    for _ in range(EPOCHS):
        start = time.process_time()
        for rows, labels in loader:
            optimizer.zero_grad()
            loss(model(rows).ravel(), labels).backward()
            optimizer.step()
        yield time.process_time() - start


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    with np.load(sys.argv[1]) as stored:
        seconds = list(measure(stored["X"], stored["y"], int(sys.argv[2])))
    print(json.dumps({"version": version("opacus"), "cpu_seconds": seconds}))
