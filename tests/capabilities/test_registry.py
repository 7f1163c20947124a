import os
import subprocess
import sys
from collections.abc import Awaitable, Callable

import pytest

from procedo.capabilities.registry import Registry
from procedo.core.model import Json
from procedo.errors import BadArgument, Refused
from procedo.jsonschemas import compile_schema
from procedo.ports import Capability, CapabilityCall, OutcomeUnknown

Perform = Callable[[Registry, str, Json], Awaitable[Json]]
BUILT_IN = ["http.request", "json.validate", "noop", "shell.exec", "template", "wait"]


def capability(*, idempotent: bool = False, objection: str | None = None, result: Json = 1) -> Capability:
    calls: list[Json] = []

    async def run(call: CapabilityCall) -> Json:
        calls.append(call.arguments)
        return result

    return Capability(
        "pump.start", "Starts a pump.", {"type": "number"}, {"type": "number"}, run, idempotent=idempotent,
        objection=objection,
    )  # fmt: skip


def test_the_built_in_capabilities_are_listed_by_id(web_registry: Callable[..., Registry]) -> None:
    registry = web_registry()

    assert [one.id for one in registry.all()] == BUILT_IN
    assert [registry.get(name) for name in BUILT_IN] == list(registry.all())
    assert registry.get("no.such") is None


def test_every_capability_describes_itself_and_declares_schemas_that_compile(
    web_registry: Callable[..., Registry],
) -> None:
    for one in web_registry().all():
        assert one.description.endswith(".")
        compile_schema(one.input_schema)
        compile_schema(one.output_schema)


def test_what_is_not_configured_says_how_to_enable_it(web_registry: Callable[..., Registry]) -> None:
    objections = {one.id: one.objection for one in web_registry().all() if one.objection is not None}

    assert sorted(objections) == ["http.request", "shell.exec"]
    assert "[capabilities.http] allowed_hosts" in objections["http.request"]
    assert "[capabilities.shell] enabled = true" in objections["shell.exec"]


def test_what_is_configured_has_no_objection(
    web_registry: Callable[..., Registry], shell_registry: Callable[..., Registry]
) -> None:
    http, shell = web_registry("api.example.com").get("http.request"), shell_registry().get("shell.exec")

    assert http is not None
    assert http.objection is None
    assert shell is not None
    assert shell.objection is None


@pytest.mark.parametrize(
    ("capability_id", "arguments", "repeatable"),
    [
        ("noop", {}, True),
        ("wait", {"seconds": 1}, True),
        ("json.validate", {}, True),
        ("template", {}, True),
        ("http.request", {"url": "https://a.example"}, True),
        ("http.request", {"url": "https://a.example", "method": "HEAD"}, True),
        ("http.request", {"url": "https://a.example", "method": "POST"}, False),
        ("http.request", {"url": "https://a.example", "method": "DELETE"}, False),
        ("http.request", {"url": "https://a.example", "method": "POST", "idempotent": True}, True),
        ("http.request", {"url": "https://a.example", "method": "POST", "idempotent": "yes"}, False),
        ("http.request", "nonsense", False),
        ("shell.exec", {"argv": ["git", "status"]}, False),
        ("shell.exec", {"argv": ["git", "status"], "idempotent": True}, True),
    ],
)
def test_only_what_does_no_harm_twice_is_repeatable(
    web_registry: Callable[..., Registry], capability_id: str, arguments: Json, repeatable: bool
) -> None:
    found = web_registry().get(capability_id)

    assert found is not None
    assert found.repeatable(arguments) is repeatable


def test_two_capabilities_with_one_id_are_refused() -> None:
    with pytest.raises(ValueError, match=r"'pump\.start'"):
        Registry([capability(), capability()])


@pytest.mark.anyio
async def test_arguments_are_checked_before_anything_happens(perform: Perform) -> None:
    acted: list[Json] = []

    async def run(call: CapabilityCall) -> Json:
        acted.append(call.arguments)
        return 1

    registry = Registry([Capability("pump.start", "Starts a pump.", {"type": "number"}, True, run)])

    with pytest.raises(BadArgument) as caught:
        await perform(registry, "pump.start", "fast")
    assert str(caught.value) == "pump.start: the arguments do not fit: value: expected number, got string."
    assert acted == []

    assert await perform(registry, "pump.start", 3) == 1
    assert acted == [3]


@pytest.mark.anyio
async def test_a_result_that_breaks_its_schema_is_unknown_after_an_effect_and_a_failure_otherwise(
    perform: Perform,
) -> None:
    with pytest.raises(OutcomeUnknown, match="the result breaks its own schema: value: expected number, got string"):
        await perform(Registry([capability(result="done")]), "pump.start", 3)
    with pytest.raises(Refused, match="the result breaks its own schema"):
        await perform(Registry([capability(result="done", idempotent=True)]), "pump.start", 3)

    assert await perform(Registry([capability(result=7)]), "pump.start", 3) == 7


@pytest.mark.anyio
async def test_a_capability_with_an_objection_does_nothing(perform: Perform) -> None:
    with pytest.raises(Refused, match="cannot be used here: it is off"):
        await perform(Registry([capability(objection="it is off")]), "pump.start", 3)

    assert await perform(Registry([capability()]), "pump.start", 3) == 1


@pytest.mark.anyio
async def test_a_call_through_the_registry_is_checked_too() -> None:
    registry = Registry([capability()])
    found = registry.get("pump.start")
    assert found is not None

    assert await registry.call(found, CapabilityCall(3, "run-1", "2.1", "e")) == 1
    with pytest.raises(BadArgument):
        await registry.call(found, CapabilityCall("3", "run-1", "2.1", "e"))


@pytest.mark.anyio
@pytest.mark.parametrize("capability_id", BUILT_IN[:2] + BUILT_IN[3:])
async def test_an_argument_that_nobody_knows_is_refused_by_name(
    web_registry: Callable[..., Registry], shell_registry: Callable[..., Registry], perform: Perform, capability_id: str
) -> None:
    registry = web_registry("a.example") if capability_id == "http.request" else shell_registry()

    with pytest.raises(BadArgument, match="spede: expected no such property"):
        await perform(registry, capability_id, {"spede": 1})


def test_the_registry_is_built_without_the_web_client_and_the_validator() -> None:
    program = (
        "import sys, pathlib; from procedo.capabilities.registry import built_in\n"
        "from procedo.config.capability_settings import CapabilitySettings, ShellSettings\n"
        "here = pathlib.Path(); built_in(CapabilitySettings(ShellSettings(here, here)), {}).all()\n"
        "print([name for name in ('httpx2', 'jsonschema') if name in sys.modules])"
    )

    environ = {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environ)

    assert done.stdout == "[]\n"
