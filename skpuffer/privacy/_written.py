"""The plain data of certificates, as strict JSON can hold it, and back."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import fields
from functools import singledispatch
from typing import Any, TypeVar

from skpuffer.exceptions import Statement, stated, value_error
from skpuffer.kernel import certificates
from skpuffer.kernel.plain import kinds, load_kinds, to_plain

__all__ = [
    "SCHEMA",
    "SEEDED",
    "VERSION",
    "digest_of_plain",
    "from_plain",
    "plain_of",
    "read_back",
]

Certificate = TypeVar("Certificate", bound=certificates.Certificate)

#: What the data of a certificate says it is, and the version of its fields and curves.
#: A field, a notion or a kind of curve that is new is a new version.
SCHEMA, VERSION = "skpuffer.certificate", 5

#: What a certificate says of noise that can be drawn again.
SEEDED = Statement("assume.noise_from_seed")

#: The same, as certificates of before version 3 say it.
_SEEDED = "the noise was drawn from a seed: whoever knows it can remove the noise"

#: Fields by the version that they came with, if not the first. Left out in an older one
#: they are at their defaults, which promise nothing.
_SINCE = {"events": 2, "seeded": 3, "errors": 5}

#: The version from which on there is a digest.
_DIGESTED = 2

#: Fields that are read back as they are written, whatever they say.
_TEXTS = frozenset(
    {
        "accountant",
        "assumptions",
        "choice",
        "columns",
        "coupling_id",
        "notion",
        "profile",
        "record",
        "relation",
        "release",
        "scenario",
        "source",
        "table",
    }
)


def plain_of(
    certificate: certificates.Certificate, gain: float | None
) -> dict[str, object]:
    """Return plain data with its schema, version and digest; see `Certificate`."""
    # every field, whichever there are: none can be forgotten by a list of them
    out: dict[str, object] = {"schema": SCHEMA, "version": VERSION}
    out |= {f.name: to_plain(getattr(certificate, f.name)) for f in fields(certificate)}
    out["notion"] = str(certificate.notion)
    # for readers; it follows from two fields and is not read back
    out["gain"] = to_plain(gain)
    # the curve of an estimate may have been made of private rows
    if not certificate.certified:
        out["curve"] = out["events"] = None
    out["digest"] = digest_of_plain(out)
    return out


def read_back(kind: type[Certificate], plain: Mapping[str, object]) -> Certificate:
    """Return the certificate of a class that :func:`plain_of` wrote."""
    version = _version_of(plain)
    given = set(plain) - {"digest", "gain", "schema", "version"}
    names = {f.name for f in fields(kind)}
    names -= {name for name, since in _SINCE.items() if version < since}
    if names != given:
        # one that is left out would be taken for its default, which may say more
        raise value_error(
            "certificate.data_fields_wrong",
            names=sorted(names - given),
            given=sorted(given - names),
        )
    held: dict[str, Any] = {
        # a text such as 'inf' is a number elsewhere, and stays a text in these
        name: plain[name] if name in _TEXTS else from_plain(plain[name])
        for name in names
    }
    # what older versions said in words alone
    if version < _SINCE["seeded"]:
        held["seeded"] = _SEEDED in held["assumptions"]
    made = kind(**held)
    rest = {name: value for name, value in plain.items() if name != "digest"}
    if version >= _DIGESTED and plain.get("digest") != digest_of_plain(rest):
        raise value_error("certificate.data_digest_differs")
    return made


def _version_of(plain: Mapping[str, object]) -> int:
    """Version of the fields of a certificate's data, if it is one that is known."""
    schema, version = plain.get("schema"), plain.get("version")
    if schema != SCHEMA or not isinstance(version, int) or version < 1:
        raise value_error(
            "certificate.data_schema_wrong",
            schema=SCHEMA,
            schema2=schema,
            version=version,
        )
    if version > VERSION:
        raise value_error(
            "certificate.data_version_too_new", version=version, version2=VERSION
        )
    return version


def digest_of_plain(plain: Mapping[str, object]) -> str:
    """Return the digest of plain data, whatever tool has written it since.

    An integrity check and no signature. Returns ``sha256:`` and the hexadecimal digest
    of the data as JSON in ASCII with keys in order and no spaces. Numbers are as
    ``%.17g`` in C.
    """
    return (
        f"sha256:{hashlib.sha256(_canonical(dict(plain)).encode('ascii')).hexdigest()}"
    )


@singledispatch
def _canonical(value: object) -> str:
    return json.dumps(value)


@_canonical.register
def _(value: dict) -> str:  # type: ignore[type-arg] # what it dispatches by
    parts = (f"{json.dumps(k)}:{_canonical(value[k])}" for k in sorted(value))
    return f"{{{','.join(parts)}}}"


@_canonical.register
def _(value: list | tuple) -> str:  # type: ignore[type-arg]
    return f"[{','.join(map(_canonical, value))}]"


@_canonical.register
def _(value: int | float) -> str:
    # a tool between may write 1.0 as 1, and mean the same; a truth value is no number
    return json.dumps(value) if type(value) is bool else f"{value:.17g}"


@singledispatch
def from_plain(value: object) -> object:
    """Return the data that :func:`to_plain` wrote, with tuples for lists.

    Parameters
    ----------
    value : object

    Returns
    -------
    object

    Raises
    ------
    ValueError
        If there is something of a kind that is not known.
    """
    return value


@from_plain.register
def _(value: list) -> object:  # type: ignore[type-arg]
    return tuple(map(from_plain, value))


@from_plain.register
def _(value: str) -> object:
    # texts that may be just these are kept away from here by whoever reads them
    return float(value) if value in ("inf", "-inf", "nan") else value


@from_plain.register
def _(value: dict) -> object:  # type: ignore[type-arg]
    if value.keys() == {"code", "parameters", "text"}:
        return stated(value)
    # noise goes by its family, all else by its kind
    for key in ("kind", "family"):
        if type(value.get(key)) is str:
            return _of_kind(key, value)
    return {name: from_plain(part) for name, part in value.items()}


def _of_kind(key: str, plain: dict[str, Any]) -> object:
    if plain[key] not in kinds(key):
        load_kinds()
    kind = kinds(key).get(plain[key])
    # only classes that declared themselves are made, never one named by the data
    if kind is None:
        names = ", ".join(sorted(map(repr, kinds(key))))
        raise value_error(
            "table.data_kind_unknown", key=key, plain=plain[key], names=names
        )
    values = {name: from_plain(part) for name, part in plain.items() if name != key}
    try:
        # through the constructor, so that fields are checked as they were the first
        # time
        return kind.read_back(values)  # type: ignore[attr-defined]
    except (TypeError, KeyError) as error:
        raise value_error(
            "table.data_fields_missing", key=key, plain=plain[key], error=error
        ) from None
