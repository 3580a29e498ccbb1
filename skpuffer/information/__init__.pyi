from ._atoms import (
    Atoms,
)
from ._banks import (
    Bank,
)
from ._bounded_mean import (
    mean_lower_bound,
    mean_upper_bound,
)
from ._certification import (
    InformationBound,
    certify_scale,
    density_bound,
    entropy_bound,
    largest_bound,
    retry_scale,
)
from ._channel import (
    MixtureChannel,
)
from ._composition import (
    compose_additive,
    compose_exact,
    compose_mixed,
    compose_residual,
)
from ._conversions import (
    budget_for_posterior,
    chi2_success,
    disclosure_bound,
    dp_epsilon,
    dp_equivalent,
    dp_posterior,
    fano_bound,
    membership_advantage,
    pinsker_success,
    posterior_success,
    total_variation_success,
)
from ._corrections import (
    decoder_deviation,
    donsker_varadhan_gap,
    slice_statistic,
    sliced_gap,
    surrogate_terms,
)
from ._dp_mean import (
    dp_mean_power,
    published_dp_mean_power,
)
from ._families import (
    search_law,
)
from ._gaussian import (
    algorithm1,
    closed_form,
    efficient,
    inflated_covariance,
    log_det,
    proportional,
    waterfill,
)
from ._information import (
    Information,
    SecretInformation,
)
from ._laws import (
    GaussianLaw,
)
from ._output_model import (
    OutputModel,
)
from ._products import (
    GaussianMixtureMarginal,
    LaplaceMarginal,
    LatticeMarginal,
    LogisticMarginal,
    ProductLaw,
    UniformMarginal,
)
from ._residual import (
    ResidualReport,
    alphabet_value,
    cross_entropy_value,
    gaussian_value,
    logistic_value,
    membership_value,
    subset_value,
)
from ._search import (
    FoundNoise,
    search_noise,
)

__all__ = [
    "Atoms",
    "Bank",
    "FoundNoise",
    "GaussianLaw",
    "GaussianMixtureMarginal",
    "Information",
    "InformationBound",
    "LaplaceMarginal",
    "LatticeMarginal",
    "LogisticMarginal",
    "MixtureChannel",
    "OutputModel",
    "ProductLaw",
    "ResidualReport",
    "SecretInformation",
    "UniformMarginal",
    "algorithm1",
    "alphabet_value",
    "budget_for_posterior",
    "certify_scale",
    "chi2_success",
    "closed_form",
    "compose_additive",
    "compose_exact",
    "compose_mixed",
    "compose_residual",
    "cross_entropy_value",
    "decoder_deviation",
    "density_bound",
    "disclosure_bound",
    "donsker_varadhan_gap",
    "dp_epsilon",
    "dp_equivalent",
    "dp_mean_power",
    "dp_posterior",
    "efficient",
    "entropy_bound",
    "fano_bound",
    "gaussian_value",
    "inflated_covariance",
    "largest_bound",
    "log_det",
    "logistic_value",
    "mean_lower_bound",
    "mean_upper_bound",
    "membership_advantage",
    "membership_value",
    "pinsker_success",
    "posterior_success",
    "proportional",
    "published_dp_mean_power",
    "retry_scale",
    "search_law",
    "search_noise",
    "slice_statistic",
    "sliced_gap",
    "subset_value",
    "surrogate_terms",
    "total_variation_success",
    "waterfill",
]
