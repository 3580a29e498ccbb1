"""Fields of each release that the rules of the kernel read, or need not read.

An accountant refuses a release with any other field: what it means is not known.
"""

__all__ = [
    "GRADIENT_FIELDS",
    "PARTITION_FIELDS",
    "QUERY_FIELDS",
    "SELECTION_FIELDS",
    "STAGE_FIELDS",
    "VOTE_FIELDS",
]

#: What is read of a query: what bounds its sensitivity, its units, its assumptions.
QUERY_FIELDS: frozenset[str] = frozenset(
    {
        "assumptions",
        "ball",
        "context",
        "contribution",
        "dim",
        "factor",
        "is_integer",
        "is_sum",
        "linear",
        "modulus",
        "modulus_norm",
        "n_records",
        "name",
        "query",
        "sensitivity",
        "shift_ceiling",
        "slack",
        "units",
    }
)

#: What is read of several sums in turn.
STAGE_FIELDS: frozenset[str] = QUERY_FIELDS | {"norm", "relation", "stages"}

#: What is read of a training run, and what is known not to matter.
GRADIENT_FIELDS: frozenset[str] = frozenset(
    {
        "assumptions",
        "batch_size",
        "clip_norm",
        "clip_order",
        "context",
        "dim",
        "n_records",
        "n_steps",
        "name",
        "noise_correlation",  # read, and refused where no account is known
        "noise_proportions",  # read as the release's units
        "noise_position",  # read, and refused where it is not the gradient
        "record",
        "sampling",
        "blocks",
        # Immaterial: each noisy sum counts as released, whatever is made of it.
        "optimiser",
        "published",
    }
)

#: What is read of a vote.
VOTE_FIELDS: frozenset[str] = frozenset(
    {
        "assumptions",
        "context",
        "groups",
        "max_answers",
        "n_queries",
        "n_records",
        "n_teachers",
        "name",
        "relation",
        "threshold",
        "threshold_noise_ratio",
        # Immaterial: only counts of classes that a vote leaves or joins move, and each
        # counts as released whatever the others said.
        "n_classes",
        "query",
    }
)

#: What is read of a selection.
SELECTION_FIELDS: frozenset[str] = frozenset(
    {"assumptions", "context", "n_records", "name", "scores"}
)

#: What is read of the selection of keys.
PARTITION_FIELDS: frozenset[str] = frozenset(
    {"assumptions", "context", "delta", "max_keys", "max_units", "n_records", "name"}
)
