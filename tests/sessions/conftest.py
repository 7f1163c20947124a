from collections.abc import Iterator
from pathlib import Path

import pydantic_ai.models
import pytest
from session_bench import Bench


@pytest.fixture(autouse=True)
def no_vendor() -> Iterator[None]:
    """No test here asks a model of anybody."""
    before = pydantic_ai.models.ALLOW_MODEL_REQUESTS
    pydantic_ai.models.ALLOW_MODEL_REQUESTS = False
    yield
    pydantic_ai.models.ALLOW_MODEL_REQUESTS = before


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)
