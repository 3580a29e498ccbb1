"""A certificate's file, read with nothing taken for granted."""

import hashlib
import json
import math
import os
from pathlib import Path
from typing import Any

from ._structure import CertificateFileError, check_structure

__all__ = ["digest_of_plain", "read_certificate"]

#: Bytes of the largest file that is read.
LARGEST = 2**23

#: How deeply data may be nested; that of curves is some ten deep.
DEEPEST = 40

#: Whole numbers beyond it are not exact in double precision.
_LARGEST_INTEGER = 2**53


class _Unfit(str):
    """Why something in the text is no value, where the value would be."""


def read_certificate(source: Any) -> dict[str, Any]:
    """Return the plain data of a certificate, of the structure of the schema.

    Parameters
    ----------
    source : str, path, dict or Certificate
        A file of JSON, its data, or what has a method `to_dict`. Nothing in it is run.

    Returns
    -------
    dict

    Raises
    ------
    CertificateFileError
        Naming the field, if it is none.
    OSError
        If the file cannot be opened.
    """
    if isinstance(source, str | os.PathLike):
        plain = _parsed(_text_of(Path(source)))
    else:
        plain = _as_json(source.to_dict() if hasattr(source, "to_dict") else source)
    _check_values(plain)
    if isinstance(plain, dict):
        _check_version(plain)
    check_structure(plain)
    rest = {name: value for name, value in plain.items() if name != "digest"}
    if plain["digest"] != digest_of_plain(rest):
        raise CertificateFileError(
            "certificate.digest is not that of the data: something was changed since "
            "it was written."
        )
    read: dict[str, Any] = plain
    return read


def digest_of_plain(plain: dict[str, Any]) -> str:
    """Return the digest of plain data, as the schema defines it."""
    return f"sha256:{hashlib.sha256(_canonical(plain).encode('ascii')).hexdigest()}"


def _canonical(value: Any) -> str:
    if isinstance(value, dict):
        parts = (
            f"{json.dumps(name)}:{_canonical(value[name])}" for name in sorted(value)
        )
        return f"{{{','.join(parts)}}}"
    if isinstance(value, list):
        return f"[{','.join(map(_canonical, value))}]"
    # a tool between may write 1.0 as 1, and mean the same
    if isinstance(value, int | float) and not isinstance(value, bool):
        return f"{value:.17g}"
    return json.dumps(value)


def _as_json(plain: Any) -> Any:
    """Data as it would come back from a file."""
    try:
        return json.loads(json.dumps(plain))
    except (TypeError, ValueError, RecursionError):
        raise CertificateFileError(
            "certificate holds what JSON cannot, or nothing but itself."
        ) from None


def _text_of(path: Path) -> str:
    with path.open("rb") as file:
        # no more than is read, whatever the size of the file is said to be
        raw = file.read(LARGEST + 1)
    if len(raw) > LARGEST:
        raise CertificateFileError(
            f"The file is larger than {LARGEST} bytes, and certificates are not."
        )
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise CertificateFileError(
            f"The file is no text in UTF-8: byte {error.start} is none of it."
        ) from None


def _parsed(text: str) -> Any:
    try:
        return json.loads(
            text,
            parse_constant=lambda name: _Unfit(f"{name} is no number of JSON"),
            parse_float=_float_of,
            parse_int=_integer_of,
            object_pairs_hook=_object_of,
        )
    except json.JSONDecodeError as error:
        raise CertificateFileError(
            f"The file is no JSON: {error.msg}, in line {error.lineno} at column "
            f"{error.colno}."
        ) from None
    except RecursionError:
        raise CertificateFileError(_too_deep("certificate")) from None


def _float_of(text: str) -> Any:
    value = float(text)
    return value if math.isfinite(value) else _Unfit("it is too large a number")


def _integer_of(text: str) -> Any:
    # to read very many digits would take long
    if len(text) > 17 or abs(int(text)) > _LARGEST_INTEGER:
        return _Unfit("it is too large a number")
    return int(text)


def _object_of(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        found[name] = _Unfit("it stands there twice") if name in found else value
    return found


def _check_values(plain: Any) -> None:
    """Refuse what is unfit, by its path, and what is too deep, without recursion."""
    left = [(plain, "certificate", 0)]
    while left:
        value, path, depth = left.pop()
        if depth > DEEPEST:
            raise CertificateFileError(_too_deep(path))
        if isinstance(value, _Unfit):
            raise CertificateFileError(f"{path} is not valid: {value}.")
        if isinstance(value, float) and not math.isfinite(value):
            raise CertificateFileError(f"{path} is not valid: it is no finite number.")
        if isinstance(value, dict):
            for name, part in value.items():
                shown = name[:40] if isinstance(name, str) else "?"
                left.append((part, f"{path}.{shown}", depth + 1))
        elif isinstance(value, list):
            left += [(v, f"{path}[{i}]", depth + 1) for i, v in enumerate(value)]


def _too_deep(path: str) -> str:
    return f"{path[:200]} is nested more than {DEEPEST} deep, and certificates are not."


def _check_version(plain: dict[str, Any]) -> None:
    """Refuse another schema before fields are missed that only this one has."""
    if plain.get("schema") != "skpuffer.certificate":
        raise CertificateFileError(
            "certificate.schema must be 'skpuffer.certificate': the file is something "
            "else."
        )
    version = plain.get("version")
    if isinstance(version, bool) or version != 4:
        raise CertificateFileError(
            "certificate.version must be 4. An older one says less: write it anew by "
            "Certificate.from_dict(...).to_dict(). A newer one is for a newer skpuffer."
        )
