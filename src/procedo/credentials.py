"""Secrets by reference. A reference may be shown, stored and compared; the value behind it never is.

A value exists only inside `Secret`, whose text form is a mask, and leaves it by `reveal` at the one place
that sends it. It is read anew each time, so a rotated credential needs no restart.
"""

import importlib
import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Final

from msgspec import Struct

from procedo.core.model import Json

__all__ = ["MAX_BYTES", "Missing", "Secret", "SecretRef", "SecretSource", "has_keyring", "resolve"]

MAX_BYTES: Final = 65_536
"""How large a file that holds a secret may be."""


class SecretSource(StrEnum):
    """Where a secret lies."""

    ENV = "env"
    FILE = "file"
    KEYRING = "keyring"


class SecretRef(Struct, frozen=True):
    """Where a secret lies and what it is called there: a variable, a file's path, or `service/user` of the keyring."""

    source: SecretSource
    name: str

    def record(self) -> Json:
        """The reference as it is written in the configuration; the value is no part of it."""
        return {str(self.source): self.name}

    def __str__(self) -> str:
        return f"{self.source}:{self.name}"


@dataclass(frozen=True, slots=True, eq=False)
class Secret:
    """A secret's value. It prints as a mask; only `reveal` gives it away."""

    _value: str = field(repr=False)

    def reveal(self) -> str:
        """The value itself, for the one call that needs it."""
        return self._value

    def __repr__(self) -> str:
        return "Secret([masked])"

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return repr(self)

    def __reduce__(self) -> str:
        raise TypeError("a secret is never copied into a record")


class Missing(Exception):
    """A reference leads to nothing; the message names the reference and never a value."""


def has_keyring() -> bool:
    """True when the package that reads the system's keyring is installed."""
    return importlib.util.find_spec("keyring") is not None


def resolve(reference: SecretRef, environ: Mapping[str, str], root: Path) -> Secret:
    """Read the secret behind a reference; a file's path is relative to `root`. Raises `Missing`."""
    if reference.source is SecretSource.ENV:
        value = environ.get(reference.name, "")
    elif reference.source is SecretSource.FILE:
        value = _from_file(root / Path(reference.name).expanduser())
    else:
        value = _from_keyring(reference.name)
    value = value.strip()
    if not value:
        raise Missing(f"there is no value behind {reference}")
    if any(ord(letter) < 32 or ord(letter) == 127 for letter in value):
        raise Missing(f"the value behind {reference} has control characters, so it is no credential")
    return Secret(value)


def _from_file(path: Path) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise Missing(f"the file {path} cannot be read: {error.strerror or error}") from error
    if len(data) > MAX_BYTES:
        raise Missing(f"the file {path} is larger than {MAX_BYTES} bytes, so it holds no credential")
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise Missing(f"the file {path} is no text") from None


def _from_keyring(name: str) -> str:
    if not has_keyring():
        raise Missing("the package 'keyring' is not installed")
    keyring = importlib.import_module("keyring")
    errors = importlib.import_module("keyring.errors")
    service, _, user = name.partition("/")
    try:
        return keyring.get_password(service, user) or ""
    except errors.KeyringError as error:
        raise Missing(f"the keyring cannot be read: {error}") from error
