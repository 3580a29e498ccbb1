"""The check of a certificate: every number, by a second path and without data."""

import copy
import hashlib
import json
import math
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol

from ._report import Finding, Report, State
from ._rules import findings_of
from ._structure import CertificateFileError, check_structure

#: By which part of itself a number is changed to see whether another depends on it.
_CHANGE = 0.01

#: Numbers that are changed, and seconds spent on it, at most: files may be made to take
#: long.
_MOST_TRIED, _SECONDS = 400, 60.0

#: Numbers of an array that are changed one by one, and not as a whole.
_FEW = 12

#: Fields that are named where many no longer follow.
_MOST_NAMED = 4

#: Not numbers of the promise.
_APART = (
    *("schema", "version", "digest", "assumptions", "source", "choice"),
    "errors",
)


class _Written(Protocol):
    """What gives its plain data, such as a certificate."""

    def to_dict(self) -> dict[str, Any]:
        """Return the data."""
        ...


def check(source: str | os.PathLike[str] | dict[str, Any] | _Written) -> Report:
    """Recompute the numbers of a certificate from what it states.

    Parameters
    ----------
    source : str, path, dict or Certificate
        A file with the JSON of :meth:`skpuffer.privacy.Certificate.to_dict`, its data,
        or a certificate.

    Returns
    -------
    Report
        True if no number contradicts the others. It names what cannot be recomputed.

    Raises
    ------
    CertificateFileError
        Naming the field, if the source is no certificate of the schema with its digest.

    Notes
    -----
    No function that made the numbers is used: steps are composed by dp-accounting,
    other costs by quadrature or in closed form. A number that others rest on counts as
    recomputed if each of these no longer follows once it is changed by one hundredth,
    either way.

    The premises are not checked: a consistent forgery passes, and the digest is no
    signature.

    Examples
    --------
    >>> from skpuffer.accountants import GroupPrivacy
    >>> from skpuffer.certificate import check
    >>> from skpuffer.noise import GaussianNoise
    >>> from skpuffer.releases import QueryRelease, Sensitivity
    >>> from skpuffer.scenarios import RecordScenario
    >>> release = QueryRelease(
    ...     query=lambda X, y: X.sum(axis=0),
    ...     n_records=100,
    ...     dim=1,
    ...     sensitivity=Sensitivity(add_remove={2: 1.0}),
    ... )
    >>> accountant = GroupPrivacy(epsilon=1.0, delta=1e-5, noise="gaussian")
    >>> certificate = accountant.calibrate(release, RecordScenario()).certificate
    >>> report = check(certificate)
    >>> report.follows, report.is_promise_recomputed
    (True, True)
    >>> for finding in report.of("recomputed")[:2]:
    ...     print(finding)
    epsilon: 1, the epsilon at delta 1e-05
    delta: 1e-05, the delta at epsilon 1
    """
    plain = read_certificate(source)
    found = findings_of(plain)
    if all(finding.state != State.DOES_NOT_FOLLOW for finding in found):
        found += _probed(plain, found)
    return Report(
        tuple(found),
        plain["notion"],
        tuple(stated["text"] for stated in plain["assumptions"]),
    )


def _probed(plain: dict[str, Any], found: list[Finding]) -> Iterator[Finding]:
    """Findings of the numbers that no rule speaks of: whether a change would show."""
    known = {finding.field for finding in found}
    firm = {f.field for f in found if f.state == State.RECOMPUTED}
    end = time.monotonic() + _SECONDS
    for at, (path, value, put) in enumerate(_numbers(plain, "", _setter([plain], 0))):
        if path in known or any(path.startswith(f"{name}[") for name in known):
            continue
        if at >= _MOST_TRIED or time.monotonic() > end:
            yield Finding(
                field=path,
                state=State.NOT_RECOMPUTABLE,
                reason="there are too many numbers to see what follows from each",
            )
            continue
        shown = [
            _changed(plain, put, new, firm)
            for new in (_moved(value, -1), _moved(value, 1))
        ]
        if all(shown):
            names = sorted(set.intersection(*shown) or set.union(*shown))
            named = ", ".join(names[:_MOST_NAMED])
            if len(names) > _MOST_NAMED:
                named += f" and {len(names) - _MOST_NAMED} more"
            changed = "all changed" if isinstance(value, list) else "changed"
            yield Finding(
                field=path,
                state=State.RECOMPUTED,
                reason=f"{changed} by a hundredth, it would not give {named}",
            )
        else:
            yield Finding(
                field=path,
                state=State.NOT_RECOMPUTABLE,
                reason="no other number follows from it so closely that a change by a "
                "hundredth would show",
            )


def _changed(
    plain: dict[str, Any], put: Callable[[Any], Any], new: Any, firm: set[str]
) -> set[str]:
    """Fields that no longer follow once a number is another."""
    old = put(new)
    try:
        check_structure(plain)
        found = findings_of(plain)
    except CertificateFileError:
        # such a number is none
        return {"the schema"}
    finally:
        put(old)
    held = {f.field for f in found if f.state == State.RECOMPUTED}
    wrong = {f.field for f in found if f.state == State.DOES_NOT_FOLLOW}
    return wrong | (firm - held)


def _moved(value: Any, sign: int) -> Any:
    """A number or an array of them, changed by a part of it or by one."""
    if isinstance(value, list):
        return [_moved(part, sign) for part in value]
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    if isinstance(value, int):
        return value + sign * max(1, round(_CHANGE * abs(value)))
    return value * (1 + sign * _CHANGE)


def _numbers(
    value: Any, path: str, put: Callable[[Any], Any]
) -> Iterator[tuple[str, Any, Callable[[Any], Any]]]:
    """Yield path, value and a setter, which returns what was there, of each number.

    Arrays of many numbers count as one. Zeros have nothing less, and infinity promises
    nothing.
    """
    if isinstance(value, dict):
        for name, part in value.items():
            if path or name not in _APART:
                inner = f"{path}.{name}" if path else name
                yield from _numbers(part, inner, _setter(value, name))
    elif isinstance(value, list):
        flat = list(_leaves(value))
        # one by one, unless they are many
        if len(flat) > _FEW and all(_is_number(leaf) for leaf in flat):
            yield path, copy.deepcopy(value), put
            return
        for at, part in enumerate(value):
            yield from _numbers(part, f"{path}[{at}]", _setter(value, at))
    elif _is_number(value) and value != 0 and math.isfinite(value):
        yield path, value, put


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _leaves(value: Any) -> Iterator[Any]:
    for part in value:
        if isinstance(part, list):
            yield from _leaves(part)
        else:
            yield part


def _setter(holder: Any, key: Any) -> Callable[[Any], Any]:
    def put(new: Any) -> Any:
        old, holder[key] = holder[key], new
        return old

    return put


# -- A certificate's file, read with nothing taken for granted -------------------------


#: Bytes of the largest file that is read.
LARGEST = 2**23

#: How deeply data may be nested; that of curves is some ten deep.
DEEPEST = 40

#: Whole numbers beyond it are not exact in double precision.
_LARGEST_INTEGER = 2**53


class _Unfit(str):
    """Why something in the text is no value, where the value would be."""


def read_certificate(source: Any) -> dict[str, Any]:
    """Return the plain data of a certificate, of the structure of the schema."""
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
    if isinstance(version, bool) or version != 5:
        raise CertificateFileError(
            "certificate.version must be 5. An older one says less: write it anew by "
            "Certificate.from_dict(...).to_dict(). A newer one is for a newer skpuffer."
        )
