"""How `serve --http` is reached and whose OAuth tokens it takes: the tables `[http]` and `[http.oauth]`."""

from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from msgspec import Struct

from procedo.config.document import Document
from procedo.credentials import SecretRef

__all__ = ["OAuthSettings", "ServingSettings", "serving"]

_HTTP: Final = "http"
_OAUTH: Final = "http.oauth"
_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})


class OAuthSettings(Struct, frozen=True):
    """Which OAuth bearer tokens are taken: JWTs of `issuer` for `resource`, signed by a key of the JWKS.

    One of `jwks_url` and `jwks_file` is set. A token needs every scope of `required_scopes`.
    """

    issuer: str
    resource: str
    jwks_url: str | None = None
    jwks_file: Path | None = None
    required_scopes: tuple[str, ...] = ()


class ServingSettings(Struct, frozen=True):
    """How the HTTP server is reached. `public_url` is its address from outside, None when that is its own.

    `open_metrics`: /metrics wants no token of callers on this machine.
    `state_keys` is where the keys of open questions lie; None: beside the store.
    """

    public_url: str | None = None
    allowed_origins: tuple[str, ...] = ()
    state_keys: SecretRef | None = None
    oauth: OAuthSettings | None = None
    open_metrics: bool = False


def serving(root: Path, document: Document) -> ServingSettings:
    """Read the two tables; problems go to the document."""
    return ServingSettings(
        public_url=document.value(_HTTP, "public_url"),
        allowed_origins=document.value(_HTTP, "allowed_origins"),
        state_keys=document.value(_HTTP, "state_keys"),
        oauth=_oauth(root, document) if ("http", "oauth") in document.tables else None,
        open_metrics=document.value(_HTTP, "open_metrics"),
    )


def _oauth(root: Path, document: Document) -> OAuthSettings | None:
    place = ("http", "oauth")
    url, file = document.value(_OAUTH, "jwks_url"), document.value(_OAUTH, "jwks_file")
    broken = document.broke(_OAUTH, "jwks_url") or document.broke(_OAUTH, "jwks_file")
    if (url is None) == (file is None) and not broken:
        hint = "give one of jwks_url and jwks_file"
        document.object_to(place, "jwks", "[http.oauth] needs the issuer's public keys from one place", hint)
    if url is not None and urlsplit(url).scheme == "http" and urlsplit(url).hostname not in _LOOPBACK:
        message = f"jwks_url {url} is not protected: whoever is on the way could put in keys of their own"
        document.object_to((*place, "jwks_url"), "insecure-url", message, "use https")
    issuer, resource = document.value(_OAUTH, "issuer"), document.value(_OAUTH, "resource")
    if issuer is None or resource is None:
        return None
    path = None if file is None else root / file
    return OAuthSettings(issuer, resource, url, path, document.value(_OAUTH, "required_scopes"))
