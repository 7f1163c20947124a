"""Where the server listens, under which names it is reached, and from which pages it may be called."""

import ipaddress
import socket
from typing import Final

from mcp.server.transport_security import TransportSecuritySettings
from msgspec import Struct

from procedo.config.serving import ServingSettings
from procedo.errors import BadArgument, Refused
from procedo.surfaces.web.protection import hosts_of

__all__ = ["Addresses", "is_loopback", "listen"]

_LOOPBACK: Final = ("127.0.0.1", "localhost", "[::1]")
_BACKLOG: Final = 128


def _ip(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return None


def is_loopback(host: str) -> bool:
    """True when only this machine can reach that address. A name that has to be looked up is not, `localhost` is."""
    ip = _ip(host)
    return host == "localhost" if ip is None else ip.is_loopback


def listen(host: str, port: int) -> socket.socket:
    """A listening socket; port 0 takes a free one. Raises `BadArgument` when the address cannot be had."""
    try:
        family, kind, proto, _, address = socket.getaddrinfo(
            host.strip("[]"), port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        sock = socket.socket(family, kind, proto)
    except OSError as error:
        raise _taken(host, port, error) from error
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(address)
        sock.listen(_BACKLOG)
    except OSError as error:
        sock.close()
        raise _taken(host, port, error) from error
    sock.setblocking(False)
    return sock


def _taken(host: str, port: int, error: OSError) -> BadArgument:
    message = f"Nothing can listen at {host}, port {port}: {error.strerror or error}."
    return BadArgument("cannot_listen", message, "Choose another --port, or 0 for a free one.")


class Addresses(Struct, frozen=True):
    """`origin` is where people reach the server, `origins` everything under which it answers.

    `callers` are the pages whose scripts may call the MCP endpoint: our own, and those that the settings name.
    """

    origin: str
    origins: tuple[str, ...]
    callers: tuple[str, ...]

    @classmethod
    def of(cls, host: str, port: int, settings: ServingSettings) -> "Addresses":
        """The names of a server that listens there.

        Raises `Refused` for an address of every interface without `public_url`: nobody could say which names are ours.
        """
        ip = _ip(host)
        public = settings.public_url
        if ip is not None and ip.is_unspecified and public is None:
            message = f"At {host} the server is reached under names that it does not know."
            hint = 'Say in procedo.toml how people reach it: [http] public_url = "https://…"'
            raise Refused("no_public_url", message, hint)
        if is_loopback(host):
            own = tuple(f"http://{name}:{port}" for name in _LOOPBACK)
        elif ip is not None and ip.is_unspecified:
            own = ()
        else:
            own = (f"http://{f'[{ip}]' if ip is not None and ip.version == 6 else host}:{port}",)
        origins = own if public is None else (public, *own)
        return cls(origins[0], origins, (*origins, *settings.allowed_origins))

    @property
    def security(self) -> TransportSecuritySettings:
        """The checks of Host and Origin at the MCP endpoint: always on."""
        return TransportSecuritySettings(
            enable_dns_rebinding_protection=True,
            allowed_hosts=sorted(hosts_of(self.origins)),
            allowed_origins=list(self.callers),
        )
