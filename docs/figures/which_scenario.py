"""Questions that lead to a scenario."""

import matplotlib.pyplot as plt

QUESTIONS = [
    ("Do the records tell of each other?", "GaussianScenario, MarkovChainScenario, …"),
    ("Is the secret one column's value?", "AttributeScenario"),
    ("Is it which group the table is about?", "GroupScenario"),
    ("Is it how common a value is?", "PrevalenceScenario"),
    ("Must any program do, on average?", "SubsampleScenario"),
    ("Are k records one household?", "RecordScenario(k=…)"),
]

fig, ax = plt.subplots(figsize=(7, 5.2), layout="constrained")
ax.set(xlim=(0, 10), ylim=(-1.3, len(QUESTIONS)))
ax.axis("off")
asked = {"boxstyle": "round,pad=0.45", "fc": "white", "ec": "0.4"}
answer = {"boxstyle": "square,pad=0.45", "fc": "#d6e6f2", "ec": "none"}
arrow = {"arrowstyle": "-|>", "color": "0.4"}
for i, (question, scenario) in enumerate(QUESTIONS):
    y = len(QUESTIONS) - 0.6 - i
    ax.annotate("", (2.6, y - 0.72), (2.6, y - 0.28), arrowprops=arrow)
    ax.annotate("", (5.95, y), (5.0, y), arrowprops=arrow)
    ax.text(2.6, y, question, ha="center", va="center", bbox=asked)
    ax.text(6.1, y, scenario, ha="left", va="center", bbox=answer, family="monospace")
    ax.text(5.45, y + 0.12, "yes", ha="center", size="small", color="0.4")
    ax.text(2.7, y - 0.52, "no", size="small", color="0.4")
ax.text(
    2.6,
    -0.75,
    "RecordScenario()",
    ha="center",
    va="center",
    bbox=answer,
    family="monospace",
)
plt.show()
