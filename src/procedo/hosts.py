"""Which web hosts may be called. A host that no pattern lists is refused.

A pattern is `host`, `*.domain` (any host below it, not the domain itself), each with an optional
`:port` and an optional scheme in front. Without a port the scheme's own port is meant. Without a
scheme https is meant, and plain http for this machine alone; to allow plain http elsewhere, write it:
`http://intranet.example:8080`. A listed name is trusted whatever address it resolves to; an address
is allowed only when it is itself listed.
"""

import ipaddress
import re
from typing import Final

from msgspec import Struct

__all__ = ["PORTS", "HostPattern", "is_loopback"]

PORTS: Final = {"https": 443, "http": 80}
_LABEL: Final = r"[a-z0-9](?:[a-z0-9_-]*[a-z0-9])?"
_NAME: Final = re.compile(rf"{_LABEL}(?:\.{_LABEL})*")
_PATTERN: Final = re.compile(r"(?:(https?)://)?(\*\.)?(\[[0-9a-f:.]+\]|[^:/\[\]*]+)(?::(\d{1,5}))?")


def _plain(host: str) -> str:
    """One spelling for one host: lower case, an IPv6 address in its shortest form without brackets."""
    bare = host.lower().removeprefix("[").removesuffix("]")
    try:
        return ipaddress.ip_address(bare).compressed
    except ValueError:
        return bare


def is_loopback(host: str) -> bool:
    """True when the host is this machine, by its name `localhost` or by a loopback address."""
    bare = _plain(host)
    try:
        return ipaddress.ip_address(bare).is_loopback
    except ValueError:
        return bare == "localhost"


class HostPattern(Struct, frozen=True):
    """One line of the allowlist. `scheme` None: https, and http on this machine. `port` None: the scheme's own."""

    host: str
    subdomains: bool = False
    port: int | None = None
    scheme: str | None = None

    @classmethod
    def parse(cls, text: str) -> "HostPattern":
        """Read a pattern. Raises `ValueError` with what was expected."""
        found = _PATTERN.fullmatch(text.strip().lower())
        if found is None:
            raise ValueError('expected "host", "host:port" or "*.domain", with "http://" in front for plain http')
        scheme, wildcard, host, port = found.groups()
        bare = _plain(host)
        if not host.startswith("[") and not _NAME.fullmatch(bare):
            raise ValueError("expected a host name of letters, digits, dots and hyphens (punycode for others)")
        if host.startswith("[") and ":" not in bare:
            raise ValueError("expected an IPv6 address inside the brackets")
        if wildcard and "." not in bare:
            raise ValueError('expected a domain of at least two parts behind "*.", such as "*.example.org"')
        if port is not None and not 0 < int(port) < 65536:
            raise ValueError("expected a port from 1 to 65535")
        return cls(bare, wildcard is not None, int(port) if port else None, scheme)

    def allows(self, scheme: str, host: str, port: int | None) -> bool:
        """True when a request to this place is covered; `port` None is the scheme's own."""
        wanted = _plain(host)
        named = wanted.endswith(f".{self.host}") if self.subdomains else wanted == self.host
        own = PORTS.get(scheme)
        if not named or own is None or (port or own) != (self.port or own):
            return False
        if self.scheme is not None:
            return scheme == self.scheme
        return scheme == "https" or is_loopback(wanted)

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        scheme = f"{self.scheme}://" if self.scheme else ""
        return f"{scheme}{'*.' if self.subdomains else ''}{host}{f':{self.port}' if self.port else ''}"
