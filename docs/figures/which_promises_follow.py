"""A certificate's promise beside what its noise gives, as the checker recomputes it."""

from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np

from skpuffer.accountants import PrivacyLoss
from skpuffer.certificate import check
from skpuffer.summary import PrivateMean

rows = np.random.default_rng(0).uniform(-2, 2, size=(400, 3))
mean = PrivateMean(bounds=(-2, 2), accountant=PrivacyLoss(1.0, 1e-5, noise="gaussian"))
certificate = mean.fit(rows).certificate_


def recomputed(epsilon):
    """Return the delta that the checker finds at an epsilon, from the file alone."""
    findings = check(replace(certificate, epsilon=epsilon)).findings
    return next(finding.found for finding in findings if finding.field == "delta")


fig, ax = plt.subplots(figsize=(6, 3.4), layout="constrained")
epsilons = np.linspace(0.4, 1.4, 21)
deltas = [recomputed(float(epsilon)) for epsilon in epsilons]
ax.semilogy(epsilons, deltas, "C0", label="recomputed from the noise in the file")
ax.fill_between(epsilons, deltas, 1e-9, color="C3", alpha=0.12, lw=0)
ax.text(0.43, 3e-9, "more is promised than the noise keeps", color="C3")
promised = (certificate.epsilon, certificate.delta)
ax.plot(*promised, "C0o", label="as it was written")
ax.plot(0.7, promised[1], "C3X", ms=8, label="changed to ε = 0.7")
ax.annotate(
    "",
    (0.7, recomputed(0.7)),
    (0.7, promised[1] * 1.5),
    arrowprops={"arrowstyle": "-|>", "color": "C3"},
)
ax.set(xlabel="ε", ylabel="δ", xlim=(0.4, 1.4), ylim=(1e-9, 0.1))
ax.legend(frameon=False, fontsize="small", loc="upper right")
plt.show()
