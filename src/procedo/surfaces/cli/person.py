"""Who sits at the command line: the user of the operating system, by user id and never by environment."""

import os
import sys

from procedo.core.state import Principal, PrincipalKind, Source

__all__ = ["operator"]


def _user_name() -> str:
    if sys.platform == "win32":
        return os.getlogin()
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        # A container may run under a number that has no name; the number is the identity then.
        return f"uid-{os.getuid()}"


def operator() -> Principal:
    """The principal of every command that is typed: a human, known by the account."""
    return Principal(Source.CLI, _user_name(), PrincipalKind.HUMAN)
