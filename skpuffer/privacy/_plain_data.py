"""A certificate as plain data, and back."""

from dataclasses import fields
from typing import TYPE_CHECKING, Any, Self

from skpuffer.exceptions import Statement
from skpuffer.kernel.plain import from_plain, to_plain
from skpuffer.utils._digest import digest_of_plain

if TYPE_CHECKING:
    from ._certificate import Certificate

__all__ = ["SCHEMA", "SEEDED", "VERSION", "PlainDataMixin"]

#: What the data of a certificate says it is, and the version of its fields and curves.
#: A field, a notion or a kind of curve that is new is a new version.
SCHEMA, VERSION = "skpuffer.certificate", 4

#: What a certificate says of noise that can be drawn again.
SEEDED = Statement("assume.noise_from_seed")

#: The same, as certificates of before version 3 say it.
_SEEDED = "the noise was drawn from a seed: whoever knows it can remove the noise"

#: Fields by the version that they came with, if not the first. Left out in an older one
#: they are at their defaults, which promise nothing.
_SINCE = {"events": 2, "seeded": 3}

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


class PlainDataMixin:
    """Writing and reading of all fields of a certificate."""

    def to_dict(self: "Certificate") -> dict[str, Any]:  # type: ignore[misc]
        """Return plain data, fit for strict JSON: infinity is the text 'inf'.

        Returns
        -------
        dict
            All fields and the `gain`, besides the name of the `schema`, its `version`
            and a `digest` of all the rest, which shows that nothing was changed by
            accident, and not who wrote it. The curve of an estimate is left out: there
            is nothing to convert it to, and private rows may have gone into it.

        See Also
        --------
        skpuffer.certificate.check : Recompute the numbers from what is written.
        """
        # every field, whichever there are: none can be forgotten by a list of them
        out: dict[str, Any] = {"schema": SCHEMA, "version": VERSION}
        out |= {f.name: to_plain(getattr(self, f.name)) for f in fields(self)}
        out["notion"] = str(self.notion)
        # for readers; it follows from two fields and is not read back
        out["gain"] = to_plain(self.gain)
        # the curve of an estimate may have been made of private rows
        if not self.certified:
            out["curve"] = out["events"] = None
        out["digest"] = digest_of_plain(out)
        return out

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> Self:
        """Return the certificate that :meth:`to_dict` wrote.

        Parameters
        ----------
        plain : dict
            As it was written, or as it comes back from JSON.

        Returns
        -------
        Certificate
            The same in every field, with a curve that answers the same.

        Raises
        ------
        ValueError
            If it is of another schema or a newer version, a field is missing or
            unknown, the notion or the curve is of a kind that is not known, or
            the digest is not that of the data.

        Examples
        --------
        >>> from skpuffer.privacy import Certificate
        >>> from skpuffer.privacy_loss import GaussianCurve
        >>> certificate = Certificate(
        ...     notion="approximate_dp",
        ...     epsilon=1.0,
        ...     delta=0.127,
        ...     curve=GaussianCurve(1.0),
        ... )
        >>> Certificate.from_dict(certificate.to_dict()) == certificate
        True
        """
        schema, version = plain.get("schema"), plain.get("version")
        if schema != SCHEMA or not isinstance(version, int) or version < 1:
            raise ValueError(
                Statement(
                    "certificate.data_schema_wrong",
                    schema=SCHEMA,
                    schema2=schema,
                    version=version,
                )
            )
        if version > VERSION:
            raise ValueError(
                Statement(
                    "certificate.data_version_too_new",
                    version=version,
                    version2=VERSION,
                )
            )
        given = set(plain) - {"digest", "gain", "schema", "version"}
        names = {f.name for f in fields(cls)}  # type: ignore[arg-type]
        names -= {name for name, since in _SINCE.items() if version < since}
        if names != given:
            # one that is left out would be taken for its default, which may say more
            raise ValueError(
                Statement(
                    "certificate.data_fields_wrong",
                    names=sorted(names - given),
                    given=sorted(given - names),
                )
            )
        held = {
            # a text such as 'inf' is a number elsewhere, and stays a text in these
            name: value if name in _TEXTS else from_plain(value)
            for name, value in plain.items()
            if name in names
        }
        # what older versions said in words alone
        if version < _SINCE["seeded"]:
            held["seeded"] = _SEEDED in held["assumptions"]
        made = cls(**held)
        rest = {name: value for name, value in plain.items() if name != "digest"}
        if version >= _DIGESTED and plain.get("digest") != digest_of_plain(rest):
            raise ValueError(Statement("certificate.data_digest_differs"))
        return made
