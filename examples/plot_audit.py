"""
An attack beside what the certificate allows
============================================

A model that learns its records by heart tells who was among them: it is surer of those
it has seen. Here an attacker guesses the members of models of handwritten digits,
without privacy and at several budgets, and what he gets is laid beside what each
certificate allows him at most.
"""

# %%
# Members and others
# ------------------
# Chance decides who is a member, so that nothing but the model tells members from
# others. A fifth of the labels are wrong, and many public random features leave room to
# learn each of them by heart.
import os

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import load_digits
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import LogisticRegression

from skpuffer.accountants import PrivacyLoss
from skpuffer.audit import (
    distinguishing_attack,
    largest_auc,
    largest_tpr,
    membership_attack,
)
from skpuffer.inspection import AuditDisplay
from skpuffer.linear_model import PrivateLogisticRegression
from skpuffer.scenarios import RecordScenario
from skpuffer.training import Training

small = os.environ.get("SKPUFFER_EXAMPLE_SIZE") == "small"
n, n_shadows, n_waves = (200, 4, 200) if small else (800, 16, 600)

rng = np.random.default_rng(0)
X, y = load_digits(return_X_y=True)
drawn = rng.permutation(len(X))[: 2 * n]
# a law that knows no data: random waves of public length
waves = RBFSampler(gamma=0.02 * 64, n_components=n_waves, random_state=0)
X = waves.fit_transform((X[drawn] - 8) / 64)
wrong = rng.random(2 * n) < 0.2
y = np.where(wrong, rng.integers(0, 10, 2 * n), y[drawn])
records = X[:n], y[:n], X[n:], y[n:]
print(f"{n} members and as many others, {X.shape[1]} features")

# %%
# By heart
# --------
# The loss of the model gives many members away. An attacker who fits models of his own
# (LiRA: is *this* loss likelier of a model that saw *this* record?) does better, above
# all where he may not raise a false alarm.
by_heart = LogisticRegression(C=1e4, max_iter=5000).fit(*records[:2])
loss = membership_attack(by_heart, *records)
lira = membership_attack(
    by_heart, *records, score="lira", n_shadows=n_shadows, random_state=0
)
for name, attack in (("loss", loss), ("LiRA", lira)):
    low, high = attack.auc_interval()
    point = attack.tpr_at(0.01)
    print(
        f"{name}: AUC {attack.auc:.3f} [{low:.3f}, {high:.3f}], TPR {point.tpr:.3f} at "
        f"FPR {point.fpr:.3f}"
    )

# %%
# At several budgets
# ------------------
# A certificate of a replaced record speaks of this experiment: another image stands in
# the place of one that is no member. It bounds the area under *any* attacker's ROC
# curve. What these attackers get falls towards one half, and its interval is not
# above what is allowed.
rows, models = [], {}
for epsilon in (0.5, 2.0, 8.0, 32.0):
    model = PrivateLogisticRegression(
        scenario=RecordScenario(relation="replace"),
        accountant=PrivacyLoss(epsilon=epsilon, delta=1e-5),
        classes=range(10),
    ).fit(*records[:2])
    attack = membership_attack(model, *records)
    ratios = membership_attack(
        model, *records, score="lira", n_shadows=n_shadows, random_state=0
    )
    certificate = model.certificate_
    models[epsilon] = ratios, certificate
    rows.append(
        {
            "epsilon": epsilon,
            "accuracy": model.score(*records[2:]),
            "loss": attack.auc,
            "LiRA": ratios.auc,
            "low": ratios.auc_interval()[0],
            "high": ratios.auc_interval()[1],
            "exceeds": attack.exceeds(certificate) or ratios.exceeds(certificate),
            "allowed": largest_auc(certificate, relation="replace"),
            "TPR allowed at FPR 0.01": largest_tpr(
                certificate, 0.01, relation="replace"
            ),
        }
    )
table = pd.DataFrame(rows).set_index("epsilon")
print(table.round(3).to_string())

# %%
# *Does any attack get more than its certificate allows?*
# On the left, areas against the budget. On the right, the whole curves on logarithmic
# axes: whoever is sure of a few people has found something, however little the area.
# The bands are the intervals, and dashed lines what each certificate allows.
_, (left, right) = plt.subplots(1, 2, figsize=(12, 5.4))
errors = np.abs(table[["low", "high"]].T - table["LiRA"]).to_numpy()
left.errorbar(
    table.index, table["LiRA"], yerr=errors, marker="o", capsize=3, label="LiRA"
)
left.plot(table.index, table["loss"], marker="s", label="loss")
left.plot(table.index, table["allowed"], "k--", label="allowed")
left.axhline(lira.auc, color="C0", ls=":", label="LiRA, no privacy")
left.axhline(loss.auc, color="C1", ls=":", label="loss, no privacy")
left.axhline(0.5, color="0.6", lw=0.8)
left.set(xscale="log", xlabel="ε (δ = 1e-5)", ylabel="AUC of the attack")
left.set_xticks(list(table.index), [f"{e:g}" for e in table.index])
left.minorticks_off()
left.legend(loc="upper left", fontsize="small")
AuditDisplay.from_attack(lira, name="no privacy", ax=right)
for epsilon in (2.0, 0.5):
    AuditDisplay.from_attack(*models[epsilon], name=f"ε = {epsilon:g}", ax=right)
right.legend(loc="lower right", fontsize="x-small")
plt.tight_layout()
plt.show()

# %%
# Is the certificate itself right?
# --------------------------------
# An attack on a model of real records says how much these records leak, which may be
# far less than is allowed. Whether a promise is *kept* is seen where it is tight: in
# the worst two worlds, run many times. Here it is one step of gradients on a record
# with one label or the other, and an attacker who knows the record. With 0.7 times the
# noise that was certified he gets more than the certificate allows.


def released(label, epsilon):
    """Coefficients of many fits where the first record has this label."""
    rows = []
    for _ in range(100 if small else 400):
        model = PrivateLogisticRegression(
            scenario=RecordScenario(relation="replace"),
            accountant=PrivacyLoss(epsilon=epsilon, delta=1e-5),
            classes=[0, 1],
            training=Training(n_steps=1, clip_norm=0.1, learning_rate=1.0),
        ).fit([[1.0, 0.0], [0.0, 1.0], [0.0, -1.0]], [label, 0, 1])
        rows.append([*model.coef_.ravel(), *model.intercept_])
    return np.array(rows), model


budget = 8.0
for share in (1.0, 0.7):
    (first, model), (second, _) = released(1, budget), released(0, budget)
    # along the record, whose last entry is that of the intercept
    attack = distinguishing_attack(first, second, score=lambda w: w @ [1.0, 0.0, 1.0])
    if share == 1:
        promise = model.certificate_
        # which budget has 0.7 times the noise?
        less = model.noise_.with_scale(0.7 * model.noise_.scale)
        budget = model.accountant_.certify(less, model.release_, model.scenario).epsilon
    low, high = attack.auc_interval()
    print(
        f"{share:g} x the noise: AUC {attack.auc:.3f} [{low:.3f}, {high:.3f}], allowed "
        f"{largest_auc(promise):.3f}, broken: {attack.exceeds(promise)}"
    )
