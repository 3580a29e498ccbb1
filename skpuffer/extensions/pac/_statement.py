"""What a certificate of mutual information says in words."""

from skpuffer.exceptions import Statement

from ._outputs import Outputs

__all__ = ["meaning"]

#: Of any budget; see section 5 of Zhang and Vorobeychik, and Xiao and Devadas.
_AVERAGE = Statement("assume.average_over_prior")
_NO_DP = Statement("assume.not_differential_privacy")

#: Of outputs that were simulated: chance in the query would be another input.
_DETERMINISTIC = Statement("assume.query_deterministic")

_OF_COLUMN = {
    "record": (Statement("assume.record_seen_by_itself")),
    "groups": (Statement("assume.group_secret_seen_by_itself")),
}


def meaning(outputs: Outputs) -> tuple[Statement, ...]:
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
        said.append(_OF_COLUMN[outputs.fact.secret])
    if outputs.exact and outputs.constant:
        count, dim = outputs.constant, outputs.atoms.dim
        said.append(
            Statement("assume.constant_coordinates_released", count=count, dim=dim)
        )
    if outputs.release.ball is not None:
        ball = outputs.release.ball
        said.append(Statement("assume.outputs_projected_to_ball", radius=ball.radius))
    return tuple(said)
