"""The keys of `[http]` and `[http.oauth]`: how `serve --http` is reached, and whose OAuth tokens it takes."""

from typing import Final
from urllib.parse import urlsplit

from procedo.config import agent_forms, forms
from procedo.config.forms import Form
from procedo.config.key import Key
from procedo.core.model import Json

__all__ = ["SERVING_KEYS", "address", "scope"]

_SERVED: Final = "http"
_OAUTH: Final = "http.oauth"


def _text(value: Json) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError("expected text in quotes")
    return value.strip()


def _is_address(text: str) -> bool:
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        return False
    plain = parts.username is None and not parts.query and not parts.fragment and not any(c.isspace() for c in text)
    return plain and parts.scheme in ("http", "https") and bool(parts.hostname) and port != 0


def address(words: str, *, path: bool) -> Form:
    """A web address; without `path` only scheme, host and port."""

    def read(value: Json) -> str:
        text = _text(value)
        if not _is_address(text):
            raise ValueError(f"expected {words} with http or https, without user, query and fragment")
        if path:
            return text
        if urlsplit(text).path not in ("", "/"):
            raise ValueError(f"expected {words}, without a path")
        return text.rstrip("/")

    return Form(words, read, {"type": "string", "format": "uri"})


def scope() -> Form:
    """An OAuth scope."""

    def read(value: Json) -> str:
        text = _text(value)
        if any(not 0x21 <= ord(c) <= 0x7E or c in '"\\' for c in text):
            raise ValueError("expected one scope, without blanks and quotes")
        return text

    return Form("scope", read, {"type": "string", "minLength": 1})


SERVING_KEYS: Final = (
    Key(
        _SERVED,
        "public_url",
        address("scheme://host", path=False),
        None,
        "Where people and clients reach `serve --http` when something stands in front of it.",
    ),
    Key(
        _SERVED,
        "allowed_origins",
        forms.listed(address("scheme://host", path=False)),
        (),
        "Other web pages whose scripts may call the MCP endpoint.",
    ),
    Key(
        _SERVED,
        "open_metrics",
        forms.flag(),
        False,
        "Whether /metrics answers without a token; only where the server listens on this machine alone.",
    ),
    Key(
        _SERVED,
        "state_keys",
        agent_forms.secret(),
        None,
        "Where the keys lie that seal open questions at clients, for servers on several machines.",
    ),
    Key(_OAUTH, "issuer", address("web address", path=True), None, "Who issues the tokens.", required=True),
    Key(
        _OAUTH,
        "resource",
        address("web address", path=True),
        None,
        "The audience that a token must be for: the address of the MCP endpoint.",
        required=True,
    ),
    Key(_OAUTH, "jwks_url", address("web address", path=True), None, "Where the issuer's public keys are."),
    Key(_OAUTH, "jwks_file", forms.folder(), None, "A file with the issuer's public keys, instead of jwks_url."),
    Key(_OAUTH, "required_scopes", forms.listed(scope()), (), "Scopes without which a token opens nothing."),
)
