import pytest

pytest_plugins = ["no_skips"]


@pytest.fixture
def anyio_backend() -> str:
    """The product runs on asyncio alone."""
    return "asyncio"
