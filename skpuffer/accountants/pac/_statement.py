"""What a certificate of mutual information says in words."""

from ._outputs import Outputs

__all__ = ["meaning"]

#: Of any budget; see section 5 of Zhang and Vorobeychik, and Xiao and Devadas.
_AVERAGE = (
    "the bound is an average over the scenario's prior and the noise: no attacker who "
    "knows prior, mechanism and noise raises the chance of any guess by more than it "
    "allows; of another prior, or an attacker who knows more, nothing is said"
)
_NO_DP = (
    "this is not differential privacy: a single secret of probability p, such as an "
    "outlier, may leak up to log(1/p) nats"
)

#: Of outputs that were simulated: chance in the query would be another input.
_DETERMINISTIC = (
    "the query is a function of the table: run again on the same one it gives the same "
    "vector"
)

_BY_COLUMN = {
    "record": (
        "each record is seen by itself: of two at once nothing is said, nor of an "
        "attacker who knows which others were drawn; the whole draw may leak as much "
        "as is stated beside it, and budgets of this kind do not add up"
    ),
    "groups": (
        "each group's secret is seen by itself: of two at once nothing is said, nor of "
        "an attacker who knows those of others; the whole table may leak as much as is "
        "stated beside it, and budgets of this kind do not add up"
    ),
}


def meaning(outputs: Outputs) -> tuple[str, ...]:
    """Return what a bound on mutual information means, in sentences.

    Parameters
    ----------
    outputs : Outputs

    Returns
    -------
    tuple of str
    """
    said = [_AVERAGE, _NO_DP, _DETERMINISTIC]
    if outputs.by_column:
        said.append(_BY_COLUMN[outputs.fact.secret])
    if outputs.exact and outputs.constant:
        count, dim = outputs.constant, outputs.atoms.dim
        said.append(
            f"{count} of the {dim} coordinates are the same for every table of the "
            "prior, and are released as they are"
        )
    if outputs.release.ball is not None:
        ball = outputs.release.ball
        said.append(
            f"every output is projected to a ball of radius {ball.radius:g} around a "
            "public centre"
        )
    return tuple(said)
