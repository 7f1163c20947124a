"""What really happened where tasks ran side by side: the errors, and not the group that they came in."""

from collections.abc import Iterator

__all__ = ["causes"]


def causes(error: BaseException) -> Iterator[BaseException]:
    """The errors of a group, however deep, in their order; an error that is no group is its own only cause."""
    if isinstance(error, BaseExceptionGroup):
        for one in error.exceptions:
            yield from causes(one)
    else:
        yield error
