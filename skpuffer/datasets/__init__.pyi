from ._activity import fetch_activity
from ._adult import fetch_adult, load_adult
from ._german_credit import fetch_german_credit
from ._heart import fetch_heart, load_heart
from ._household_power import fetch_household_power, load_household_power
from ._rice import fetch_rice
from ._student import fetch_student, load_student

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
