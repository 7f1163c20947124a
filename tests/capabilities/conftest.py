import os
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from lifeline import Lifeline, lifelines
from webhost import WebHost, web_host

from procedo.capabilities.registry import Registry, built_in
from procedo.config.capability_settings import CapabilitySettings, HttpSettings, ShellSettings
from procedo.core.altered import altered
from procedo.core.model import Json
from procedo.hosts import HostPattern
from procedo.ports import CapabilityCall

Perform = Callable[[Registry, str, Json], Coroutine[Any, Any, Json]]


@pytest.fixture
def perform() -> Perform:
    """One call of a capability, as the driver makes it."""

    async def call(registry: Registry, capability_id: str, arguments: Json) -> Json:
        capability = registry.get(capability_id)
        assert capability is not None
        return await capability.run(CapabilityCall(arguments, "run-1", "2.1", "run-1:2.1"))

    return call


@pytest.fixture
def web() -> Iterator[WebHost]:
    with web_host() as host:
        yield host


WebRegistry = Callable[..., Registry]


@pytest.fixture
def web_registry(tmp_path: Path) -> WebRegistry:
    """A registry that may call these hosts."""

    def build(*hosts: str, timeout_s: float = 60, max_bytes: int = 4096) -> Registry:
        patterns = tuple(HostPattern.parse(host) for host in hosts)
        http = HttpSettings(patterns, timeout_s, max_bytes)
        return built_in(CapabilitySettings(ShellSettings(tmp_path, tmp_path), http), {})

    return build


ShellRegistry = Callable[..., Registry]


@pytest.fixture
def shell(tmp_path: Path) -> ShellSettings:
    """Settings under which Python itself is the allowed program, in a workspace of its own."""
    root = tmp_path / "workspace"
    root.mkdir()
    return ShellSettings(root, root, enabled=True, allowed_commands=frozenset({sys.executable}))


@pytest.fixture
def shell_registry(shell: ShellSettings) -> ShellRegistry:
    """A registry whose `shell.exec` has these settings changed."""

    def build(environ: Mapping[str, str] | None = None, **changes: object) -> Registry:
        settings = altered(shell, **changes)  # type: ignore[arg-type]  # the names are checked when it is called
        return built_in(CapabilitySettings(settings), environ if environ is not None else {"PATH": os.defpath})

    return build


@pytest.fixture
async def lifeline() -> AsyncIterator[Lifeline]:
    async with lifelines() as one:
        yield one
