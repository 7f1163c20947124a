"""What a credential looks like: in a name, and as a text by itself. Pure; the one list of shapes."""

import re
from typing import Final

from procedo.core.model import Json

__all__ = ["MASK", "masked", "masked_text", "names_secret"]

MASK: Final = "[masked]"

_SECRET_KEYS: Final = (
    "accesskey",
    "apikey",
    "authorization",
    "clientkey",
    "cookie",
    "credential",
    "credentials",
    "passphrase",
    "passwd",
    "password",
    "privatekey",
    "pwd",
    "secret",
    "secretkey",
    "signingkey",
    "token",
)
_NOT_IN_A_KEY: Final = re.compile(r"[^a-z0-9]")

_SHAPES: Final = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)"
    r"|\bsk-[A-Za-z0-9_-]{8,}"
    r"|\b[srp]k_(?:live|test)_[A-Za-z0-9]{8,}"
    r"|\bgh[opsur]_[A-Za-z0-9]{16,}"
    r"|\bgithub_pat_[A-Za-z0-9_]{16,}"
    r"|\bglpat-[A-Za-z0-9_-]{16,}"
    r"|\bxox[abeprs]-[A-Za-z0-9-]{8,}"
    r"|\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"
    r"|\bAIza[0-9A-Za-z_-]{30,}"
    r"|\b(?:npm|hf)_[A-Za-z0-9]{20,}"
    r"|\bpypi-[A-Za-z0-9_-]{20,}"
    r"|\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{4,}\.[A-Za-z0-9_-]*",
    re.DOTALL,
)
_BEARER: Final = re.compile(r"(?i)\b(bearer|basic)(\s+)[A-Za-z0-9._~+/=-]{8,}")
_IN_ADDRESS: Final = re.compile(r"(?<=://)([^/\s:@]*):([^/\s@]+)(?=@)")
# Left of the sign a secret's name, perhaps as the end of a longer one and quoted; right of it the value.
_ASSIGNED: Final = re.compile(
    r"""(?ix)
    (\b[\w-]*(?:password|passwd|passphrase|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|authorization)
    ["']?\s*[=:]\s*)
    (?:"[^"]+"|'[^']+'|[^\s,;}"']{4,})
    """
)


def names_secret(key: str) -> bool:
    """True when what stands behind such a name is a secret."""
    return _NOT_IN_A_KEY.sub("", key.casefold()).endswith(_SECRET_KEYS)


def masked_text(text: str) -> str:
    """The text with every known shape of a credential replaced."""
    text = _SHAPES.sub(MASK, text)
    text = _BEARER.sub(rf"\1\2{MASK}", text)
    text = _IN_ADDRESS.sub(rf"\1:{MASK}", text)
    return _ASSIGNED.sub(rf"\1{MASK}", text)


def masked(value: Json) -> Json:
    """A copy of the value for display; equal to the value when it holds nothing that looks like a secret."""
    if isinstance(value, str):
        return masked_text(value)
    if isinstance(value, dict):
        return {key: _under(key, item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [masked(item) for item in value]
    return value


def _under(key: str, value: Json) -> Json:
    if not names_secret(key) or value is None or isinstance(value, bool):
        return masked(value)
    return MASK
