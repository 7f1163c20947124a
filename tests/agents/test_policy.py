from pathlib import Path

import pytest
from agent_workspace import HEADLESS, At, assemble, bundle, server, toml, workspace

from procedo.agents.contract import Contract
from procedo.agents.policy import Verdict, judge, repeatable
from procedo.agents.risk import Risk, command_risk
from procedo.core.altered import altered
from procedo.core.model import Json

pytestmark = pytest.mark.anyio
ROUTE = At()


async def contract_of(folder: Path, risk: str, surface: At = ROUTE, more: str = "", agent: str = "") -> Contract:
    return await assemble(workspace(folder, toml(risk=risk, more=more, agent=agent)), surface=surface)


def verdict(contract: Contract, name: str, arguments: Json = None) -> Verdict:
    tool = contract.tool(name)
    assert tool is not None
    return judge(contract, tool, arguments or {}).verdict


TOOLS = 'allowed_tools = ["file_read", "file_write", "http_request", "shell"]\nallowed_hosts = ["example.org"]\n'
COMMANDS = 'allowed_commands = ["git", "rm", "ls", "mkdir"]\nsandbox_backend = "none"\n'


@pytest.mark.parametrize(
    ("risk", "surface", "expected"),
    [
        ("", ROUTE, {"file_read": "auto", "file_write": "ask"}),
        ("", HEADLESS, {"file_read": "auto", "file_write": "deny"}),
        ("", At(can_ask=True, route=""), {"file_read": "auto", "file_write": "ask"}),
        ('auto_approve = ["file_write"]', HEADLESS, {"file_read": "deny", "file_write": "auto"}),
        ('auto_approve = ["file_read"]\nalways_ask = ["file_read"]', ROUTE, {"file_read": "ask"}),
        ('auto_approve = ["file_read"]\nalways_ask = ["file_read"]', HEADLESS, {"file_read": "deny"}),
        ('level = "full"', HEADLESS, {"file_read": "auto", "file_write": "auto"}),
        ('level = "full"\nalways_ask = ["file_write"]', ROUTE, {"file_write": "ask"}),
        ('level = "full"\nalways_ask = ["file_write"]', HEADLESS, {"file_write": "deny"}),
    ],
)
@pytest.mark.requirement("C123", "C124")
async def test_verdicts(tmp_path: Path, risk: str, surface: At, expected: dict[str, str]) -> None:
    contract = await contract_of(tmp_path, TOOLS + COMMANDS + risk, surface)
    assert {name: str(verdict(contract, name)) for name in expected} == expected


async def test_an_agent_that_may_only_read_is_denied_what_acts_whatever_is_approved(tmp_path: Path) -> None:
    risk = 'level = "readonly"\nallowed_tools = ["file_read", "http_request", "s__look", "s__act"]\n'
    risk += 'auto_approve = ["file_read", "http_request", "s__look", "s__act"]\nallowed_hosts = ["example.org"]'
    more = server("s", "tools=look,act", more='read_only_tools = ["look"]') + bundle("s")
    contract = await contract_of(tmp_path, risk, more=more, agent='mcp_bundles = ["all"]')
    assert verdict(contract, "file_read") is Verdict.AUTO
    assert verdict(contract, "s__look") is Verdict.AUTO
    assert verdict(contract, "s__act") is Verdict.DENY
    assert verdict(contract, "http_request", {"url": "https://example.org"}) is Verdict.AUTO
    assert verdict(contract, "http_request", {"url": "https://example.org", "method": "POST"}) is Verdict.DENY


async def test_a_denial_gives_a_reason_that_the_model_can_use(tmp_path: Path) -> None:
    contract = await contract_of(tmp_path, TOOLS + COMMANDS, HEADLESS)
    tool = contract.tool("file_write")
    assert tool is not None
    assert judge(contract, tool, {}).reason == (
        "'file_write' needs a person's approval and nobody can be asked; go on without it"
    )


async def test_a_tool_outside_of_the_contract_is_denied_also_with_another_schema(tmp_path: Path) -> None:
    broad = await contract_of(tmp_path, TOOLS + COMMANDS + 'level = "full"')
    narrow = await contract_of(tmp_path, 'level = "full"\nallowed_tools = ["file_read"]')
    shell, read = broad.tool("shell"), narrow.tool("file_read")
    assert shell is not None
    assert read is not None
    assert judge(narrow, shell, {"argv": ["ls"]}).verdict is Verdict.DENY
    changed = altered(read, id=altered(read.id, schema="0"))
    assert judge(narrow, changed, {}).verdict is Verdict.DENY
    assert judge(narrow, read, {}).verdict is Verdict.AUTO


async def test_a_high_risk_command_cannot_be_named_away(tmp_path: Path) -> None:
    risk = TOOLS + COMMANDS + 'level = "full"\nauto_approve = ["shell"]\n'
    contract = await contract_of(tmp_path, risk)
    for argv in (["rm", "x"], ["/bin/rm", "x"], ["/usr/bin/RM", "x"], ["sh", "-c", "ls"], ["env", "rm", "x"]):
        assert verdict(contract, "shell", {"argv": argv}) is Verdict.DENY, argv
    assert verdict(contract, "shell", {"argv": ["ls"]}) is Verdict.AUTO
    assert verdict(contract, "shell", {"argv": ["mkdir", "x"]}) is Verdict.ASK
    relaxed = await contract_of(
        tmp_path, risk + "block_high_risk_commands = false\nrequire_approval_for_medium_risk = false\n"
    )
    assert verdict(relaxed, "shell", {"argv": ["rm", "x"]}) is Verdict.AUTO
    assert verdict(relaxed, "shell", {"argv": ["mkdir", "x"]}) is Verdict.AUTO


@pytest.mark.parametrize(
    ("argv", "risk"),
    [
        (["ls", "-l"], Risk.LOW),
        (["git", "status"], Risk.LOW),
        (["git", "log", "--output=x"], Risk.MEDIUM),
        (["git", "push"], Risk.MEDIUM),
        (["git", "-c", "core.pager=rm -rf .", "log"], Risk.HIGH),
        (["find", ".", "-name", "x"], Risk.LOW),
        (["find", ".", "-delete"], Risk.HIGH),
        (["python3.11", "x.py"], Risk.MEDIUM),
        (["python3", "-c", "1"], Risk.HIGH),
        (["python3", "-Ic", "1"], Risk.HIGH),
        (["node", "--eval=1"], Risk.HIGH),
        (["mkfs.ext4", "/dev/x"], Risk.HIGH),
        (["/opt/x/Sudo", "ls"], Risk.HIGH),
        (["rm.exe"], Risk.HIGH),
    ],
)
def test_the_risk_of_commands(argv: list[str], risk: Risk) -> None:
    assert command_risk(argv) is risk


def test_a_link_is_as_dangerous_as_what_it_leads_to() -> None:
    assert command_risk(["/opt/bin/harmless"], "/usr/bin/rm") is Risk.HIGH
    assert command_risk(["/opt/bin/harmless"], "/usr/bin/ls") is Risk.LOW
    assert command_risk(["/bin/cat"], "/bin/busybox") is Risk.LOW
    assert command_risk(["/bin/busybox", "rm"], "/bin/busybox") is Risk.HIGH


async def test_what_may_be_repeated_without_asking_is_our_own_declaration(tmp_path: Path) -> None:
    more = server("s", "tools=a,b,c", more='read_only_tools = ["a"]\nidempotent_tools = ["b"]') + bundle("s")
    risk = TOOLS.replace('"shell"', '"shell", "file_edit", "s__*"') + COMMANDS
    contract = await contract_of(tmp_path, risk, more=more, agent='mcp_bundles = ["all"]')

    def may(name: str, **arguments: Json) -> bool:
        tool = contract.tool(name)
        assert tool is not None
        return repeatable(tool, arguments)

    assert [may(name) for name in ("file_read", "file_write", "s__a", "s__b")] == [True] * 4
    assert [may(name) for name in ("shell", "file_edit", "s__c")] == [False] * 3
    assert may("http_request", url="https://example.org")
    assert not may("http_request", url="https://example.org", method="POST", idempotent=True)
