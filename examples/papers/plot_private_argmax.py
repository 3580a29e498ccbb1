"""
Private votes: which noise names the winner?
============================================

Teachers vote, noise is added to every count, and the class that leads is released. Is
Gaussian noise better for that than Laplace noise? The answer depends on a number that
is easily left out: how many queries share the budget.

After Rinberg, Shumailov, Singhal, Cummings and Papernot, *Beyond Laplace and Gaussian:
exploring the generalized Gaussian mechanism for private machine learning* (Figures 7
and 8). Chances are computed by quadrature, without simulating noise."""

# %%
# Two classes
# -----------
# A thousand votes, the runner-up behind by up to 10 %. The chance that noise does not
# change the winner, against the gap, for one query under (1, 1e-5)-differential
# privacy. Here a voter joins or leaves, as in the paper.
import os

import matplotlib.pyplot as plt
import numpy as np

from skpuffer.inspection import equivalent_noises
from skpuffer.papers import VoteUtilityDisplay, hardmax_utility, make_vote_histograms

small = os.environ.get("SKPUFFER_EXAMPLE_SIZE") == "small"

figure, axes = plt.subplots(1, 2, figsize=(10, 4), sharey=True, layout="constrained")
gaps = np.linspace(0, 10, 41)
for ax, (n_queries, n_votes) in zip(axes, [(1, 1000), (1000, 10_541)], strict=True):
    votes = np.vstack([make_vote_histograms(n_votes, 2, gap) for gap in gaps])
    shapes = [1, 2, 4]
    for noise in equivalent_noises(1.0, 1e-5, shapes, n_steps=n_queries):
        chances = hardmax_utility(votes, noise)
        ax.plot(gaps, chances, label=f"β = {noise.beta:g}")
    ax.set_xlabel("Runner-up behind by (%)")
    queries = "one query" if n_queries == 1 else f"{n_queries} queries"
    ax.set_title(f"{queries}, {n_votes} votes")
axes[0].set_ylabel("Chance to name the leader")
axes[0].legend()
plt.show()

# %%
# The shape that is best
# ----------------------
# The mean of such a curve, against the shape, with the same budget for one query and
# for many. Votes grow with the square root of the number of queries, so that the curves
# can be compared. Laplace noise (β = 1) wins the single query; the Gaussian (β = 2)
# wins many.
betas = [1, 1.25, 1.5, 1.75, 2, 2.5, 3, 4]
queries = [1, 10, 100, 1000]
display = VoteUtilityDisplay.from_budget(
    epsilon=1.0,
    delta=1e-5,
    betas=betas,
    n_queries=queries,
    n_votes=[1000, 1054, 3333, 10_541],
    relation="add_remove_vote",
)
display.ax_.set_title("Two classes, (1, 1e-5)-differential privacy for all queries")
plt.show()
for n, best, row in zip(queries, display.best_betas_, display.utilities, strict=True):
    print(f"{n:5d} queries: β = {best:g} is best of these; {np.round(row, 4)}")

# %%
# What a record can do
# --------------------
# In an ensemble of teachers a record does not add a vote: it changes a teacher, who may
# vote otherwise. Two counts move by one. Counting a single move understates the loss,
# so the library counts both; that costs as much as twice the number of queries.
figure, ax = plt.subplots(layout="constrained")
for relation in ("add_remove_vote", "replace_vote"):
    VoteUtilityDisplay.from_budget(
        betas=betas,
        n_queries=100,
        n_votes=3333,
        relation=relation,
        ax=ax,
        line_kw={"label": relation},
    )
ax.set_title("100 queries under (1, 1e-5)-differential privacy")
plt.show()

# %%
# More classes
# ------------
# With 25 classes many of them are nearly as strong as the leader, and light noise
# matters more: for a single query the difference between the shapes is larger still.
display = VoteUtilityDisplay.from_budget(
    epsilon=2.0,
    delta=1e-5,
    betas=[1, 2, 4] if small else betas,
    n_queries=[1, 100],
    n_votes=[1000, 3333],
    n_classes=25,
    n_histograms=5 if small else 50,
    relation="add_remove_vote",
)
display.ax_.set_title("25 classes, (2, 1e-5)-differential privacy for all queries")
plt.show()
