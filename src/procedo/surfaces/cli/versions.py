"""Which versions of us and of what we stand on are installed."""

from importlib.metadata import PackageNotFoundError, version

__all__ = ["installed", "procedo_version"]


def installed(package: str) -> str | None:
    """The version of an installed package, or None."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def procedo_version() -> str:
    """Our own version; a source tree that was never installed has none."""
    return installed("procedo") or "0+source"
