"""A linear softmax model trained by Opacus on given arrays.

Poisson batches of 64 records in expectation (256 from 10,000 records on), 20 epochs,
clip norm 1, plain SGD at each learning rate asked for; the noise is calibrated by
Opacus's default accountant.
"""

import json
import platform
import sys
import time
import warnings
from importlib.metadata import version

import numpy as np
import torch
from opacus import PrivacyEngine
from torch.utils.data import DataLoader, TensorDataset

EPOCHS = 20


def measure(arrays, epsilon, delta, learning_rate, seed):
    torch.manual_seed(seed)
    rows = torch.as_tensor(arrays["X_train"], dtype=torch.float32)
    labels = torch.as_tensor(arrays["y_train"], dtype=torch.long)
    model = torch.nn.Linear(rows.shape[1], int(labels.max()) + 1)
    start = time.process_time()
    model, optimizer, loader = PrivacyEngine().make_private_with_epsilon(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=learning_rate),
        data_loader=DataLoader(
            TensorDataset(rows, labels), batch_size=64 if len(rows) < 10_000 else 256
        ),
        target_epsilon=epsilon,
        target_delta=delta,
        epochs=EPOCHS,
        max_grad_norm=1.0,
    )
    loss = torch.nn.CrossEntropyLoss()
    for _ in range(EPOCHS):
        for X, y in loader:
            optimizer.zero_grad()
            loss(model(X), y).backward()
            optimizer.step()
    seconds = time.process_time() - start
    with torch.no_grad():
        scores = model(torch.as_tensor(arrays["X_test"], dtype=torch.float32))
    return {
        "setting": f"learning rate {learning_rate:g}",
        "epsilon": epsilon,
        "accuracy": float(np.mean(scores.argmax(axis=1).numpy() == arrays["y_test"])),
        "cpu_seconds": seconds,
    }


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    with np.load(sys.argv[1]) as stored:
        arrays = dict(stored)
    options = json.loads(sys.argv[2])
    answer = {
        "versions": {
            "python": platform.python_version(),
            "numpy": version("numpy"),
            "scikit-learn": version("scikit-learn"),
            "peer": version("opacus"),
        },
        "rows": [
            measure(arrays, epsilon, options["delta"], rate, options["seed"])
            for epsilon in options["epsilons"]
            for rate in options["learning_rates"]
        ],
    }
    print(json.dumps(answer))
