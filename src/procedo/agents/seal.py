"""What only the registry holds: the proof that a contract went through every check. A test watches who imports this."""

from typing import Final, final

__all__ = ["SEAL", "Seal"]


@final
class Seal:
    """The kind of the one seal; compared by identity, so another one opens nothing."""


SEAL: Final = Seal()
