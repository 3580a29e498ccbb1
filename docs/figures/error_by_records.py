"""Error of a private mean by records and budget, from a preview that reads no row."""

import matplotlib.pyplot as plt

from skpuffer.accountants import PrivacyLoss
from skpuffer.summary import PrivateMean

sizes = [100, 300, 1_000, 3_000, 10_000, 30_000]
fig, ax = plt.subplots(figsize=(5.5, 3.4), layout="constrained")
for epsilon in (0.1, 0.3, 1.0):
    mean = PrivateMean(accountant=PrivacyLoss(epsilon, 1e-6), bounds=(0, 100))
    errors = [mean.preview(n, n_features=1).std["mean_"][0] for n in sizes]
    ax.loglog(sizes, errors, "o-", label=f"noise, ε = {epsilon:g}")
# a column that is spread evenly over its bounds
ax.loglog(sizes, [100 / (12 * n) ** 0.5 for n in sizes], "k:", label="sampling error")
ax.set(xlabel="records", ylabel="standard deviation of the mean")
ax.legend(frameon=False)
plt.show()
