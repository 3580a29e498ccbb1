"""What a share of a budget is worth alone: its epsilon, and noise beside the whole."""

import matplotlib.pyplot as plt
import numpy as np

from skpuffer.accountants import PrivacyLoss
from skpuffer.accountants._budget_split import certificate_of_share
from skpuffer.scenarios import RecordScenario

whole = PrivacyLoss(1.0, 1e-5, noise="gaussian")
shares = np.linspace(0.02, 1.0, 40)
alone = [certificate_of_share(whole, RecordScenario(), s).epsilon for s in shares]
fig, ax = plt.subplots(figsize=(5.5, 3.2), layout="constrained")
ax.plot(shares, alone, label="epsilon of a share, in a session")
ax.plot(shares, shares, "k:", label="epsilon in proportion")
ax.set(xlabel="share of the budget (1, 1e-5)", ylabel="epsilon of the release alone")
ax.legend(frameon=False)
plt.show()
