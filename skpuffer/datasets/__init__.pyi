from ._measurements import (
    fetch_activity,
    fetch_household_power,
    fetch_rice,
    load_household_power,
)
from ._people import (
    fetch_adult,
    fetch_german_credit,
    fetch_heart,
    fetch_student,
    load_adult,
    load_heart,
    load_student,
)

__all__ = [
    "fetch_activity",
    "fetch_adult",
    "fetch_german_credit",
    "fetch_heart",
    "fetch_household_power",
    "fetch_rice",
    "fetch_student",
    "load_adult",
    "load_heart",
    "load_household_power",
    "load_student",
]
