"""Models of tables as they were measured: ``table-models:: NAME`` shows stored figures.

Each name is one table on the page of which model is for which table, made of the files
that benchmarks store; no figure of it is written by hand.
"""

from pathlib import Path

import pandas as pd
from compatibility import list_table
from sphinx.util.docutils import SphinxDirective

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results"
#: Names of tables that are none to be read.
TABLES = {
    "adult": "Adult",
    "german_credit": "German credit",
    "breast_cancer": "Breast cancer",
    "digits": "Digits, ten classes",
    "make_classification": "``make_classification``",
    "heart": "Heart",
    "rice": "Rice",
    "wine": "Wine, three classes",
    "student": "Students",
    "friedman": "Friedman",
    "diabetes": "Diabetes",
    "power": "Household power",
}
#: Of synthetic tables.
ROWS = {
    "real rows": "the real rows",
    "target named": "synthetic, the target named",
    "no target": "synthetic, no target",
    "independent": "synthetic, columns independent",
    "opendp MST, 'sample'": "opendp's MST, sampled",
    "opendp MST, 'round'": "opendp's MST, by its default",
}
PROMISES = ("DP, replace", "DP, add/remove", "declared odds")


class Figures:
    """Stored figures, and the files that were read.

    Attributes
    ----------
    files : list of Path
    """

    def __init__(self):
        self.files = []

    def read(self, name):
        """Return the figures of a benchmark."""
        self.files.append(RESULTS / f"{name}.csv")
        return pd.read_csv(self.files[-1])


def number(value, digits=3):
    """Return a figure as text; a dash where there is none."""
    return "–" if pd.isna(value) else f"{value:.{digits}f}".replace("-", "−")


def _shape(n, d):
    """Return the size of a table as text, in one line."""
    return f"{n:,}\N{NO-BREAK SPACE}×\N{NO-BREAK SPACE}{d}"


def _at(epsilon):
    """Return a budget as text, in one line."""
    return f"ε\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}{epsilon:g}"


def _best(cells):
    """Return figures as text, the largest in bold."""
    found = [number(cell) for cell in cells]
    shown = [float(text.replace("−", "-")) for text in found if text != "–"]
    return [
        f"**{text}**"
        if text != "–" and float(text.replace("−", "-")) == max(shown)
        else text
        for text in found
    ]


def additive(figures, numbers, epsilon):
    """Return the lines of additive models beside others, table by table.

    Parameters
    ----------
    figures : Figures
    numbers : bool
        Whether numbers are predicted, by R2, or classes, by accuracy.
    epsilon : float

    Returns
    -------
    list of str
    """
    ours, others = figures.read("additive_models"), figures.read("other_models")
    score = "r2" if numbers else "accuracy"
    ours = ours[ours["setting"] == "defaults"].set_index(["data", "model", "epsilon"])
    ours = ours[score].to_dict()
    sizes = others.drop_duplicates("data").set_index("data")
    kind = "R2" if numbers else "accuracy"
    sizes = sizes[sizes["score_is"] == kind].sort_values("n", ascending=False)
    others = others.set_index(["data", "model", "setting", "epsilon"])["score"]
    others = others.to_dict()
    linear = "PrivateRidge" if numbers else "PrivateLogisticRegression"
    exact = "Ridge" if numbers else "LogisticRegression"
    trees = f"HistGradientBoosting{'Regressor' if numbers else 'Classifier'}"
    head = ["Table", "Rows × columns", "additive", "linear", "linear, public means"]
    head += [] if numbers else ["naive Bayes"]
    rows = [[*head, "DP-EBM", "linear, no privacy", "boosting, no privacy"]]
    for data, size in sizes.iterrows():
        student = (data, "PrivateAdditiveClassifier", "code book", epsilon)
        cells = [
            ours.get((data, "ours", epsilon), others.get(student)),
            others.get((data, linear, "code book", epsilon)),
            others.get((data, linear, "public moments", epsilon)),
        ]
        if not numbers:
            bayes = (data, "PrivateCategoricalNB", "code book", epsilon)
            cells.append(others.get(bayes))
        cells.append(ours.get((data, "DP-EBM", epsilon)))
        shape = _shape(size["n"], size["n_features"])
        exactly = [
            number(others.get((data, model, "no privacy", float("inf"))))
            for model in (exact, trees)
        ]
        rows.append([TABLES[data], shape, *_best(cells), *exactly])
    return list_table(rows, [18, 14, *[11] * (len(rows[0]) - 2)])


def beliefs(figures):
    """Return the lines of models under a belief beside differential privacy."""
    found = figures.read("belief_tables")
    by = found.set_index(["n", "model", "epsilon", "promise"])["accuracy"].to_dict()
    epsilons = sorted(found["epsilon"].unique())
    head = ["Rows, model"]
    head += [f"{_at(e)}, {promise}" for e in epsilons for promise in PROMISES]
    rows = [head]
    for n, model in found[["n", "model"]].drop_duplicates().itertuples(index=False):
        cells = [by[n, model, e, p] for e in epsilons for p in PROMISES]
        name = model.removeprefix("Private").removesuffix("Classifier")
        rows.append([f"{n:,}, ``{name}``", *map(number, cells)])
    return list_table(rows, [22, *[9] * (len(head) - 1)], ":class: works-matrix")


def gaussian_bayes(figures):
    """Return the lines of naive Bayes of numbers beside diffprivlib's."""
    found = figures.read("naive_bayes")
    found = found[~found["model"].str.contains("categorical")]
    by = found.set_index(["table", "model", "epsilon"])["accuracy"].to_dict()
    epsilons = (0.3, 1.0, 3.0)
    models = {"ours, delta 1e-5": "δ = 1e-5", "ours, pure": "pure"}
    models["diffprivlib"] = "diffprivlib, pure"
    rows = [["Table", *(f"{m}, {_at(e)}" for e in epsilons for m in models.values())]]
    rows[0].append("no privacy")
    for table in found["table"].unique():
        cells = [number(by[table, m, e]) for e in epsilons for m in models]
        cells.append(number(by[table, "scikit-learn, no privacy", float("inf")]))
        rows.append([table[:1].upper() + table[1:], *cells])
    return list_table(rows, [20, *[8] * 10], ":class: works-matrix")


def clusters(figures):
    """Return the lines of inertia over scikit-learn's."""
    found = figures.read("kmeans")
    by = found.set_index(["data", "method", "epsilon"])["ratio"].to_dict()
    methods = {"ours": "δ = 1e-5", "ours, pure": "pure"}
    methods["diffprivlib, pure"] = "diffprivlib, pure"
    epsilons = (0.1, 1.0)
    names = [f"{m}, {_at(e)}" for e in epsilons for m in methods.values()]
    rows = [["Table", "Rows × columns, clusters", *names, "one centre"]]
    for data, part in found.groupby("data", sort=False):
        n, d, k = part.iloc[0][["n", "d", "k"]]
        cells = [number(by[data, m, e], 2) for e in epsilons for m in methods]
        cells.append(number(by[data, "one centre", float("inf")], 2))
        rows.append([data[:1].upper() + data[1:], f"{_shape(n, d)}, {k}", *cells])
    return list_table(rows, [16, 20, *[10] * 7])


def components(figures):
    """Return the lines of the share of the variance that components keep."""
    found = figures.read("pca")
    found = found[found["columns"] == "scaled"]
    by = found.set_index(["table", "model", "epsilon"])["kept"].to_dict()
    models = {
        ("ours, delta 1e-5", 0.1): "ε = 0.1",
        ("ours, delta 1e-5", 1.0): "ε = 1",
        ("ours, pure, noise in l2", 1.0): "ε = 1, pure",
        ("diffprivlib", 1.0): "ε = 1, diffprivlib, pure",
        ("random directions", 0.0): "random directions",
    }
    rows = [["Table", "Components", *models.values()]]
    for table, part in found.groupby("table", sort=False):
        cells = [number(by.get((table, *key))) for key in models]
        rows.append([table[:1].upper() + table[1:], str(part["k"].iloc[0]), *cells])
    return list_table(rows, [18, 12, *[14] * 5])


def synthetic(figures):
    """Return the lines of what synthetic tables of Adult keep."""
    found = figures.read("synthesis")
    found = found[(found["source"] == "measured") & (found["data"] == "adult")]
    rows = [["Rows that are learnt from", "ε", "two-way total variation"]]
    rows[0] += ["logistic regression, AUC", "boosting, AUC", "boosting, accuracy"]
    for _, row in found.iterrows():
        epsilon = "∞" if row["epsilon"] == float("inf") else f"{row['epsilon']:g}"
        columns = ("tv", "lr_auc", "hgb_auc", "hgb_accuracy")
        rows.append([ROWS[row["model"]], epsilon, *(number(row[c]) for c in columns)])
    return list_table(rows, [24, 8, 18, 18, 16, 16])


SHOWN = {
    "classes at 0.3": lambda figures: additive(figures, False, 0.3),
    "classes at 1": lambda figures: additive(figures, False, 1.0),
    "numbers at 1": lambda figures: additive(figures, True, 1.0),
    "beliefs": beliefs,
    "gaussian naive bayes": gaussian_bayes,
    "clusters": clusters,
    "components": components,
    "synthetic": synthetic,
}


class TableModels(SphinxDirective):
    """One table of stored figures."""

    required_arguments = 1
    final_argument_whitespace = True

    def run(self):
        """Return the table's nodes."""
        figures = Figures()
        lines = SHOWN[self.arguments[0]](figures)
        for path in figures.files:
            self.env.note_dependency(str(path))
        return self.parse_text_to_nodes("\n".join(lines))


def setup(app):
    """Register the directive."""
    app.add_directive("table-models", TableModels)
    return {"parallel_read_safe": True}
