"""How often an attacker may be right, by epsilon."""

import matplotlib.pyplot as plt
import numpy as np

epsilons = np.linspace(0, 5, 201)
fig, ax = plt.subplots(figsize=(5.5, 3), layout="constrained")
for share, colour in ((0.5, "C0"), (0.1, "C1"), (0.01, "C2")):
    odds = share / (1 - share) * np.exp(epsilons)
    ax.plot(epsilons, odds / (1 + odds), color=colour, label=f"{share:g} before")
ax.set(xlabel="ε", ylabel="belief in the secret, at most", ylim=(0, 1))
ax.legend(frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
plt.show()
