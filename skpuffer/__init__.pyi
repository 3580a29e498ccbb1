from . import (
    accountants,
    additive,
    audit,
    cluster,
    compose,
    datasets,
    decomposition,
    distributions,
    ensemble,
    information,
    inspection,
    ledger,
    linear_model,
    naive_bayes,
    neural_network,
    noise,
    papers,
    preprocessing,
    privacy,
    privacy_loss,
    releases,
    scenarios,
    schema,
    summary,
    svm,
    synthesis,
    testing,
    training,
    transport,
)
from ._show_versions import show_versions
from .accountants import Best, OverlapAmplification, PrivacyLoss
from .additive import PrivateAdditiveClassifier, PrivateAdditiveRegressor
from .cluster import PrivateKMeans
from .compose import OutputPerturbation, PublicPreprocessing
from .decomposition import PrivatePCA
from .ensemble import PATEClassifier
from .linear_model import (
    PrivateHuberRegressor,
    PrivateLogisticRegression,
    PrivateRidge,
    PrivateSGDClassifier,
    PrivateSGDRegressor,
)
from .naive_bayes import PrivateCategoricalNB, PrivateGaussianNB
from .neural_network import PrivateMLPClassifier
from .privacy import Certificate
from .scenarios import AttributeScenario, BoundedOdds, RecordScenario
from .schema import Schema
from .summary import (
    PrivateMean,
    PrivateQuantile,
    PrivateStandardScaler,
    PrivateStatistic,
    PrivateSummary,
)
from .svm import PrivateLinearSVC
from .synthesis import PrivateTableSynthesizer

__version__: str
__all__ = [
    "AttributeScenario",
    "Best",
    "BoundedOdds",
    "Certificate",
    "OutputPerturbation",
    "OverlapAmplification",
    "PATEClassifier",
    "PrivacyLoss",
    "PrivateAdditiveClassifier",
    "PrivateAdditiveRegressor",
    "PrivateCategoricalNB",
    "PrivateGaussianNB",
    "PrivateHuberRegressor",
    "PrivateKMeans",
    "PrivateLinearSVC",
    "PrivateLogisticRegression",
    "PrivateMLPClassifier",
    "PrivateMean",
    "PrivatePCA",
    "PrivateQuantile",
    "PrivateRidge",
    "PrivateSGDClassifier",
    "PrivateSGDRegressor",
    "PrivateStandardScaler",
    "PrivateStatistic",
    "PrivateSummary",
    "PrivateTableSynthesizer",
    "PublicPreprocessing",
    "RecordScenario",
    "Schema",
    "accountants",
    "additive",
    "audit",
    "cluster",
    "compose",
    "datasets",
    "decomposition",
    "distributions",
    "ensemble",
    "information",
    "inspection",
    "ledger",
    "linear_model",
    "naive_bayes",
    "neural_network",
    "noise",
    "papers",
    "preprocessing",
    "privacy",
    "privacy_loss",
    "releases",
    "scenarios",
    "schema",
    "show_versions",
    "summary",
    "svm",
    "synthesis",
    "testing",
    "training",
    "transport",
]
