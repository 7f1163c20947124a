import os
import signal

import pytest
from hypothesis import HealthCheck, settings

pytest_plugins = ["no_skips"]

# What runs in the background of a script is started with this signal ignored, and its children inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Whoever the tests talk to is on this machine, and a proxy that leads out of it does not lead there.
for name in ("http_proxy", "https_proxy", "all_proxy"):
    os.environ.pop(name, None)
    os.environ.pop(name.upper(), None)

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
