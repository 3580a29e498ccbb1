"""Information that leaks of a finite prior through noise: channels and their budgets.

Pure mathematics of a mechanism x -> M(x) + noise. Nothing here knows of releases,
scenarios or accountants. All in nats.

``Atoms(points, weights, memberships)`` is a finite prior: the outputs M(x_j), their
probabilities, and the value of each secret in each x_j. To these
``MixtureChannel(atoms, noise)`` adds noise, given by its covariance, as a Gaussian
noise of `skpuffer.noise`, or as a law such as ``GaussianLaw`` or ``ProductLaw``. Its
posterior is known exactly, and every answer is a mean over a ``Bank`` of draws:

- ``Bank.iid(atoms, n, rng)`` for certificates, ``Bank.stratified(atoms, n, rng)`` for
  searches, ``Bank.quadrature(atoms)`` without randomness up to three coordinates;
- ``channel.information(bank)``: MI(X; Y) as ``value`` and ``standard_error``, with one
  entry a draw of ``entropies`` (of the posterior), ``log_ratios`` and ``divergences``;
  ``channel.estimate(random_state)`` draws until it is precise;
- ``channel.secrets(bank)``: the same of every column of the memberships at once, with
  ``entropies`` of shape (n, s), ``bayes_success`` and ``worst_leakage``;
- ``channel.information_and_mmse(bank)``, ``mmse``, ``secret_mmse``: gradients;
- ``channel.information_given_others()``: of a record, for who knows all others;
- ``channel.atom_leakage``, ``bayes_success``, ``chi2_information``, ``tv_information``,
  ``leave_one_out`` (for sampled atoms), ``log_det``, ``posterior(outputs)``.

``search_noise(atoms, budget, family=..., secret=...)`` finds the least Gaussian noise
for a budget, and ``search_law`` the least of another family. Neither certifies: noise
is fixed first, and then ``entropy_bound`` reads fresh draws, or ``density_bound`` where
the atoms are a sample. Several priors may be searched at once, and each is then bounded
with its share of what may fail (``largest_bound``); ``atoms.between`` is the prior of a
discriminative pair. The rest is bounds by the covariance (``waterfill`` and others),
conversions of budgets, what several releases tell, and published corrections.
"""

from skpuffer.utils._rooms import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
