from ._attacks import (
    FanoAudit,
    InformationAttack,
    bayes_attack,
    fano_audit,
    pool_attack,
)
from ._pac import PAC
from ._residual import ResidualPAC
from .information._atoms import Atoms, Bank, Information, SecretInformation
from .information._certification import (
    InformationBound,
    certify_scale,
    density_bound,
    entropy_bound,
    largest_bound,
    retry_scale,
)
from .information._channel import MixtureChannel
from .information._composition import (
    compose_additive,
    compose_exact,
    compose_mixed,
    compose_residual,
)
from .information._corrections import (
    decoder_deviation,
    donsker_varadhan_gap,
    slice_statistic,
    sliced_gap,
    surrogate_terms,
)
from .information._dp_mean import (
    dp_mean_power,
    mean_lower_bound,
    mean_upper_bound,
    published_dp_mean_power,
)
from .information._gaussian import (
    algorithm1,
    closed_form,
    efficient,
    inflated_covariance,
    log_det,
    proportional,
    waterfill,
)
from .information._laws import (
    GaussianLaw,
    GaussianMixtureMarginal,
    LaplaceMarginal,
    LatticeMarginal,
    LogisticMarginal,
    ProductLaw,
    UniformMarginal,
)
from .information._output_model import OutputModel
from .information._search import FoundNoise, search_law, search_noise

__all__ = [
    "PAC",
    "Atoms",
    "Bank",
    "FanoAudit",
    "FoundNoise",
    "GaussianLaw",
    "GaussianMixtureMarginal",
    "Information",
    "InformationAttack",
    "InformationBound",
    "LaplaceMarginal",
    "LatticeMarginal",
    "LogisticMarginal",
    "MixtureChannel",
    "OutputModel",
    "ProductLaw",
    "ResidualPAC",
    "SecretInformation",
    "UniformMarginal",
    "algorithm1",
    "bayes_attack",
    "certify_scale",
    "closed_form",
    "compose_additive",
    "compose_exact",
    "compose_mixed",
    "compose_residual",
    "decoder_deviation",
    "density_bound",
    "donsker_varadhan_gap",
    "dp_mean_power",
    "efficient",
    "entropy_bound",
    "fano_audit",
    "inflated_covariance",
    "largest_bound",
    "log_det",
    "mean_lower_bound",
    "mean_upper_bound",
    "pool_attack",
    "proportional",
    "published_dp_mean_power",
    "retry_scale",
    "search_law",
    "search_noise",
    "slice_statistic",
    "sliced_gap",
    "surrogate_terms",
    "waterfill",
]
