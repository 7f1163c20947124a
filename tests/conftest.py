import pytest
from hypothesis import HealthCheck, settings

pytest_plugins = ["no_skips"]

# The usual examples are the same each time, and none fails for being slow on a busy machine. To look for more:
# pytest --hypothesis-profile=thorough
settings.register_profile(
    "usual", derandomize=True, deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("thorough", settings.get_profile("usual"), derandomize=False, max_examples=2000)
settings.load_profile("usual")


@pytest.fixture
def anyio_backend() -> str:
    """The product runs on asyncio alone."""
    return "asyncio"
