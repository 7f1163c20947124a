"""Which runs may be forgotten. Pure."""

from collections.abc import Mapping, Set

__all__ = ["forgotten"]


def forgotten(old: Set[str], above: Mapping[str, str | None]) -> Set[str]:
    """Those of the `old` runs that go: a sub-run stays as long as any run above it.

    `above` has the parent of every run that there is, None for a run that works for no other; a parent that is
    no longer there keeps nothing.
    """
    gone = set(old)
    while kept := {run for run in gone if (parent := above[run]) in above and parent not in gone}:
        gone -= kept
    return gone
