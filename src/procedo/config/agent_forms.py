"""Forms that only the tables of agents need: secrets by reference, addresses, maps of words, numbers with a point."""

import math
import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Final
from urllib.parse import urlsplit

from procedo.config.forms import Form, name
from procedo.core.model import Json
from procedo.credential_shapes import masked_text, names_secret
from procedo.credentials import SecretRef, SecretSource, has_keyring
from procedo.hosts import is_loopback

__all__ = ["arguments", "endpoint", "number", "provider", "secret", "server_name", "text", "words_by_name"]

_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_HEADER: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_PROVIDER: Final = re.compile(r"[a-z_]+\.[A-Za-z0-9](?:[A-Za-z0-9_-]*[A-Za-z0-9])?")
_SERVER: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9]|[_-](?![_-]))*(?<![_-])")
_BY_REFERENCE: Final = 'a reference to a secret: { env = "NAME" } or { file = "path" } or { keyring = "service/user" }'
_REFERENCE_SCHEMA: Final[Mapping[str, Json]] = {
    "type": "object",
    "properties": {str(source): {"type": "string", "minLength": 1} for source in SecretSource},
    "minProperties": 1,
    "maxProperties": 1,
    "additionalProperties": False,
}


def text(most: int = 100_000) -> Form:
    """Text of any content."""

    def read(value: Json) -> str:
        if not isinstance(value, str) or not value.strip():
            raise ValueError("expected text in quotes that is not blank")
        if len(value) > most:
            raise ValueError(f"expected at most {most} characters")
        return value

    return Form("text", read, {"type": "string", "minLength": 1, "maxLength": most})


def number(low: float, high: float) -> Form:
    """A number between two bounds, both included, as an exact decimal."""

    def read(value: Json) -> Decimal:
        if not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value):
            raise ValueError(f"expected a number from {low:g} to {high:g}")
        if not low <= value <= high:
            raise ValueError(f"expected a number from {low:g} to {high:g}")
        return Decimal(str(value))

    return Form(f"number, {low:g} to {high:g}", read, {"type": "number", "minimum": low, "maximum": high})


def _reference(value: Json) -> SecretRef:
    if not isinstance(value, dict) or len(value) != 1:
        raise ValueError(f"expected {_BY_REFERENCE}; a secret itself is never written here")
    (kind, where), *_ = value.items()
    if kind not in {str(source) for source in SecretSource}:
        raise ValueError(f"expected {_BY_REFERENCE}")
    if not isinstance(where, str) or not where.strip() or "\0" in where:
        raise ValueError(f"expected text behind {kind!r}")
    source = SecretSource(kind)
    if source is SecretSource.ENV and not _VARIABLE.fullmatch(where):
        raise ValueError("expected the name of a variable behind 'env', not its value")
    if source is SecretSource.KEYRING and not all(where.partition("/")[::2]):
        raise ValueError("expected \"service/user\" behind 'keyring'")
    if source is SecretSource.KEYRING and not has_keyring():
        raise ValueError("the package 'keyring' is not installed; install it, or use env or file")
    return SecretRef(source, where.strip())


def secret() -> Form:
    """Where a secret lies; never the secret."""
    return Form(_BY_REFERENCE, _reference, _REFERENCE_SCHEMA, masked=True)


def arguments() -> Form:
    """The arguments of a program, in order; the same one may come twice."""

    def read(value: Json) -> tuple[str, ...]:
        if not isinstance(value, list) or any(not isinstance(item, str) or "\0" in item for item in value):
            raise ValueError('expected a list of texts, such as ["--port", "8080"]')
        if any(masked_text(item) != item for item in value):
            raise ValueError("expected no secret: others see a command line; hand it over in env, by reference")
        return tuple(value)

    return Form("list of texts", read, {"type": "array", "items": {"type": "string"}}, masked=True)


def words_by_name(what: str) -> Form:
    """Variables or headers: a name, and text or the place of a secret. A name that sounds secret takes no text."""
    pattern = _VARIABLE if what == "variable" else _HEADER

    def read(value: Json) -> Mapping[str, Json]:
        if not isinstance(value, dict):
            raise ValueError(f'expected a table of {what}s, such as {{ NAME = "text", TOKEN = {{ env = "NAME" }} }}')
        found: dict[str, Json] = {}
        for key, inner in value.items():
            if not pattern.fullmatch(key):
                raise ValueError(f"expected the name of a {what}, got {key!r}")
            if not isinstance(inner, str):
                found[key] = _reference(inner)
            elif names_secret(key):
                raise ValueError(f"{key}: expected {_BY_REFERENCE}; a secret itself is never written here")
            elif masked_text(inner) != inner:
                raise ValueError(f"{key}: expected {_BY_REFERENCE}; this looks like a secret itself")
            elif any(ord(letter) < 32 for letter in inner):
                raise ValueError(f"{key}: expected text without control characters")
            else:
                found[key] = inner
        return found

    schema = {"type": "object", "additionalProperties": {"anyOf": [{"type": "string"}, dict(_REFERENCE_SCHEMA)]}}
    return Form(f"table of {what}s: text, or {_BY_REFERENCE}", read, schema, masked=True)


def endpoint() -> Form:
    """An address: https, or http on this machine."""

    def read(value: Json) -> str:
        if not isinstance(value, str):
            raise ValueError("expected an address in quotes")
        try:
            parts = urlsplit(value.strip())
            host, _ = parts.hostname, parts.port
        except ValueError as error:
            raise ValueError(f"expected an address such as https://api.example.com/v1: {error}") from None
        if parts.scheme not in {"http", "https"} or not host:
            raise ValueError("expected an address that begins with https:// and a host")
        if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
            raise ValueError("expected an address without user name, password, query and fragment")
        if parts.scheme == "http" and not is_loopback(host):
            raise ValueError("expected https; plain http is for this machine alone")
        return value.strip().rstrip("/")

    schema = {"type": "string", "pattern": "^https?://[^?#@]+$"}
    return Form("address: https://…, or http:// on this machine", read, schema, masked=True)


def provider() -> Form:
    """The name of a provider's table: type and alias."""

    def read(value: Json) -> str:
        if not isinstance(value, str) or not _PROVIDER.fullmatch(value):
            raise ValueError('expected "type.alias", as in [providers.models.<type>.<alias>]')
        return value

    return Form('"type.alias"', read, {"type": "string", "pattern": f"^{_PROVIDER.pattern}$"})


def server_name() -> Form:
    """A server's name: it is the beginning of its tools' names, so it holds no `__` and no dot."""
    plain = name()

    def read(value: Json) -> str:
        if not isinstance(value, str) or not _SERVER.fullmatch(str(plain.read(value))):
            raise ValueError("expected a name of letters and digits with single _ or - between them")
        return value

    return Form("name", read, {"type": "string", "pattern": "^[A-Za-z0-9]+([_-][A-Za-z0-9]+)*$"})
