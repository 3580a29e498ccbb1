from skpuffer.extensions.pac import Atoms as Atoms
from skpuffer.extensions.pac import Bank as Bank
from skpuffer.extensions.pac import FoundNoise as FoundNoise
from skpuffer.extensions.pac import GaussianLaw as GaussianLaw
from skpuffer.extensions.pac import GaussianMixtureMarginal as GaussianMixtureMarginal
from skpuffer.extensions.pac import Information as Information
from skpuffer.extensions.pac import InformationBound as InformationBound
from skpuffer.extensions.pac import LaplaceMarginal as LaplaceMarginal
from skpuffer.extensions.pac import LatticeMarginal as LatticeMarginal
from skpuffer.extensions.pac import LogisticMarginal as LogisticMarginal
from skpuffer.extensions.pac import MixtureChannel as MixtureChannel
from skpuffer.extensions.pac import OutputModel as OutputModel
from skpuffer.extensions.pac import ProductLaw as ProductLaw
from skpuffer.extensions.pac import SecretInformation as SecretInformation
from skpuffer.extensions.pac import UniformMarginal as UniformMarginal
from skpuffer.extensions.pac import algorithm1 as algorithm1
from skpuffer.extensions.pac import certify_scale as certify_scale
from skpuffer.extensions.pac import closed_form as closed_form
from skpuffer.extensions.pac import compose_additive as compose_additive
from skpuffer.extensions.pac import compose_exact as compose_exact
from skpuffer.extensions.pac import compose_mixed as compose_mixed
from skpuffer.extensions.pac import compose_residual as compose_residual
from skpuffer.extensions.pac import decoder_deviation as decoder_deviation
from skpuffer.extensions.pac import density_bound as density_bound
from skpuffer.extensions.pac import donsker_varadhan_gap as donsker_varadhan_gap
from skpuffer.extensions.pac import dp_mean_power as dp_mean_power
from skpuffer.extensions.pac import efficient as efficient
from skpuffer.extensions.pac import entropy_bound as entropy_bound
from skpuffer.extensions.pac import inflated_covariance as inflated_covariance
from skpuffer.extensions.pac import largest_bound as largest_bound
from skpuffer.extensions.pac import log_det as log_det
from skpuffer.extensions.pac import mean_lower_bound as mean_lower_bound
from skpuffer.extensions.pac import mean_upper_bound as mean_upper_bound
from skpuffer.extensions.pac import proportional as proportional
from skpuffer.extensions.pac import published_dp_mean_power as published_dp_mean_power
from skpuffer.extensions.pac import retry_scale as retry_scale
from skpuffer.extensions.pac import search_law as search_law
from skpuffer.extensions.pac import search_noise as search_noise
from skpuffer.extensions.pac import slice_statistic as slice_statistic
from skpuffer.extensions.pac import sliced_gap as sliced_gap
from skpuffer.extensions.pac import surrogate_terms as surrogate_terms
from skpuffer.extensions.pac import waterfill as waterfill

from ._conversions import (
    budget_for_posterior,
    chi2_success,
    dp_epsilon,
    dp_equivalent,
    membership_advantage,
    posterior_success,
    total_variation_success,
)
from ._conversions import disclosure_bound as disclosure_bound
from ._conversions import dp_posterior as dp_posterior
from ._conversions import fano_bound as fano_bound
from ._conversions import pinsker_success as pinsker_success
from ._residual import ResidualReport
from ._residual import alphabet_value as alphabet_value
from ._residual import cross_entropy_value as cross_entropy_value
from ._residual import gaussian_value as gaussian_value
from ._residual import logistic_value as logistic_value
from ._residual import membership_value as membership_value
from ._residual import subset_value as subset_value

__all__ = [
    "ResidualReport",
    "budget_for_posterior",
    "chi2_success",
    "dp_epsilon",
    "dp_equivalent",
    "membership_advantage",
    "posterior_success",
    "total_variation_success",
]
