"""Who asks. Fixed by the transport, never by an argument."""

from enum import StrEnum

from msgspec import Struct

__all__ = ["Principal", "PrincipalKind", "Source"]


class Source(StrEnum):
    """Where a call came in. Fixed by the transport, never by an argument."""

    HOST = "host"
    CLI = "cli"
    WEB = "web"
    HTTP = "http"
    SYSTEM = "system"


class PrincipalKind(StrEnum):
    """Who is behind a principal."""

    HUMAN = "human"
    AGENT = "agent"
    SYSTEM = "system"


class Principal(Struct, frozen=True):
    """Who asks. `subject` empty means that the transport knows nobody: such a principal decides nothing."""

    source: Source
    subject: str
    kind: PrincipalKind
    groups: frozenset[str] = frozenset()

    @property
    def identity(self) -> str:
        """One person is one identity at every door: the subject, without regard to case and outer blanks."""
        return self.subject.strip().casefold()

    @property
    def key(self) -> str:
        """Who acted, for records: kind, source and subject."""
        return f"{self.kind}:{self.source}:{self.identity}"

    def __str__(self) -> str:
        return f"{self.subject.strip() or 'nobody'} ({self.kind}, {self.source})"
