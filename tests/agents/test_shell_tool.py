import shutil
import sys
from pathlib import Path

import pytest
from agent_workspace import assemble, refused, toml, workspace

from procedo.agents import sandbox
from procedo.agents.parts import Root, Sandbox, SecurityPolicy
from procedo.agents.ports import ToolDenied, ToolFailed
from procedo.agents.refusal import Cause
from procedo.agents.tools.catalogue import perform
from procedo.core.altered import altered
from procedo.core.model import Json
from procedo.ports import OutcomeUnknown

pytestmark = pytest.mark.anyio

ENVIRON = {"PATH": "/usr/bin:/bin", "SEEN": "yes", "HIDDEN": "no"}
RISK = """
allowed_tools = ["shell"]
allowed_commands = ["cat", "env", "ls", "touch", "sleep", "sh", "PYTHON"]
shell_env_passthrough = ["SEEN"]
forbidden_paths = ["vault"]
block_high_risk_commands = false
"""
enclosing = pytest.mark.parametrize(
    "backend",
    [
        pytest.param(
            "bubblewrap",
            marks=pytest.mark.skipif(
                sandbox.probe(Sandbox.BUBBLEWRAP) is not None, reason=f"{sandbox.probe(Sandbox.BUBBLEWRAP)}"
            ),
        ),
        "none",
    ],
)
needs_bubblewrap = pytest.mark.skipif(
    sandbox.probe(Sandbox.BUBBLEWRAP) is not None, reason=f"{sandbox.probe(Sandbox.BUBBLEWRAP)}"
)


async def policy_of(folder: Path, backend: str, more: str = "") -> SecurityPolicy:
    risk = RISK.replace("PYTHON", sys.executable) + f'sandbox_backend = "{backend}"\n' + more
    return (await assemble(workspace(folder, toml(risk=risk)))).security


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


async def shell(policy: SecurityPolicy, *argv: str, **more: Json) -> str:
    return await perform("shell", policy, ENVIRON, {"argv": list(argv), **more}, "effect-1")


@enclosing
async def test_a_program_runs_in_the_workspace_with_its_own_environment_only(tmp_path: Path, backend: str) -> None:
    policy = await policy_of(tmp_path, backend)
    (tmp_path / "a.txt").write_text("text")
    assert await shell(policy, "cat", "a.txt") == "exit code 0\nstdout:\ntext"
    assert await shell(policy, "cat", stdin="given") == "exit code 0\nstdout:\ngiven"
    names = {line.partition("=")[0] for line in (await shell(policy, "env")).splitlines()[2:]}
    assert names - {"PWD"} == {"SEEN"}
    await shell(policy, "touch", "made")
    assert (tmp_path / "made").exists()


@enclosing
async def test_a_program_that_fails_is_a_result(tmp_path: Path, backend: str) -> None:
    told = await shell(await policy_of(tmp_path, backend), "cat", "nothing")
    assert told == "exit code 1\nstderr:\n/usr/bin/cat: nothing: No such file or directory\n"


async def test_only_listed_programs_run(tmp_path: Path) -> None:
    policy = await policy_of(tmp_path, "none")
    for argv in (("id",), ("./cat",), ("/tmp/cat",)):  # noqa: S108  # nothing is made there
        with pytest.raises(ToolDenied, match="not allowed"):
            await shell(policy, *argv)
    with pytest.raises(ToolDenied, match="outside"):
        await shell(policy, "ls", cwd="..")
    with pytest.raises(ToolFailed):
        await shell(policy, "cat", "a\0b")
    assert await shell(policy, "ls", cwd=".") == "exit code 0\nstdout:\nprocedo.toml\nscript.toml\n"


async def test_a_link_with_a_harmless_name_does_not_run_what_is_blocked(tmp_path: Path) -> None:
    harmless = tmp_path / "harmless"
    harmless.symlink_to(shutil.which("env", path=ENVIRON["PATH"]) or "/usr/bin/env")
    more = f'sandbox_backend = "none"\nallowed_tools = ["shell"]\nallowed_commands = ["{harmless}"]\n'
    blocked = (await assemble(workspace(tmp_path, toml(risk=more)))).security
    with pytest.raises(ToolDenied, match="high-risk"):
        await shell(blocked, str(harmless))
    assert (await shell(altered(blocked, block_high_risk=False), str(harmless))).startswith("exit code 0")


@enclosing
async def test_a_program_that_is_too_slow_may_have_acted(tmp_path: Path, backend: str) -> None:
    policy = altered(await policy_of(tmp_path, backend), shell_timeout_s=0.2)
    with pytest.raises(OutcomeUnknown, match=r"within 0\.2 s"):
        await shell(policy, "sleep", "600")


@needs_bubblewrap
async def test_inside_the_sandbox_there_is_no_outside(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (tmp_path / "secret").write_text("a secret")
    (home / "vault").mkdir()
    (home / "vault" / "key").write_text("a key")
    policy = await policy_of(home, "bubblewrap")
    assert "a secret" not in await shell(policy, "cat", "../secret")
    assert "a secret" not in await shell(policy, "cat", str(tmp_path / "secret"))
    assert "a key" not in await shell(policy, "cat", "vault/key")
    assert await shell(policy, "ls", "vault") == "exit code 0"
    assert "exit code 0" not in (await shell(policy, "touch", "procedo.toml", "script.toml"))
    code = "import socket; socket.create_connection(('127.0.0.1', PORT), 1)"
    import socket

    with socket.create_server(("127.0.0.1", 0)) as listening:
        told = await shell(policy, sys.executable, "-c", code.replace("PORT", str(listening.getsockname()[1])))
        bare = altered(policy, sandbox=Sandbox.NONE)
        assert await shell(bare, sys.executable, "-c", code.replace("PORT", str(listening.getsockname()[1]))) == (
            "exit code 0"
        )
    assert "Error" in told
    assert "a secret" in await shell(bare, "cat", "../secret")


@needs_bubblewrap
async def test_the_folder_of_a_program_shows_nothing_that_is_kept_from_the_agent(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "vault").mkdir()
    for name in ("vault/key", "key.txt"):
        (tmp_path / name).write_text("a key")
    (tmp_path / ".procedo").mkdir()
    (tmp_path / ".procedo" / "procedo.db").write_text("a record")
    (tmp_path / "open").write_text("for everybody")
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "peek"
    program.write_text('#!/bin/sh\ncat "$@"\n')
    program.chmod(0o755)
    own = '[providers.models.openai_compatible.own]\nmodel = "m"\nendpoint = "http://127.0.0.1:9/v1"\n'
    text = toml(
        agent='workspace.path = "home"',
        risk=f'allowed_tools = ["shell"]\nallowed_commands = ["{program}"]\nforbidden_paths = ["vault"]\n',
        more=own + 'api_key = { file = "key.txt" }\n',
    )
    policy = (await assemble(workspace(tmp_path, text))).security
    kept = [str(tmp_path / name) for name in ("vault/key", "key.txt", ".procedo/procedo.db")]
    told = await shell(policy, str(program), str(tmp_path / "open"), *kept)
    assert "for everybody" in told
    assert "a key" not in told
    assert "a record" not in told


@needs_bubblewrap
async def test_a_folder_above_what_is_protected_is_not_moved_away(tmp_path: Path) -> None:
    risk = 'allowed_tools = ["shell"]\nallowed_commands = ["mv"]\nblock_high_risk_commands = false\n'
    text = toml(risk=risk) + '\n[sop]\nsops_dir = "own/sops"\n'
    for name in ("own/sops/a", "other", "here/inner"):
        (tmp_path / name).mkdir(parents=True)
    policy = (await assemble(workspace(tmp_path, text))).security
    reading = altered(policy, roots=(*policy.roots, Root(tmp_path / "here", False)))
    for held in ("own", "own/sops", "here/inner"):
        assert "exit code 0" not in await shell(reading, "mv", held, "moved")
    assert await shell(reading, "mv", "other", "moved") == "exit code 0"
    assert names(tmp_path) == ["here", "moved", "own", "procedo.toml", "script.toml"]


@enclosing
async def test_a_workspace_that_became_a_link_is_not_followed(tmp_path: Path, backend: str) -> None:
    home, elsewhere = tmp_path / "home", tmp_path / "elsewhere"
    home.mkdir()
    elsewhere.mkdir()
    (elsewhere / "secret").write_text("a secret")
    more = f'sandbox_backend = "{backend}"\n'
    text = toml(agent='workspace.path = "home"', risk=RISK.replace("PYTHON", sys.executable) + more)
    policy = (await assemble(workspace(tmp_path, text))).security
    assert await shell(policy, "ls") == "exit code 0"
    home.rmdir()
    home.symlink_to(elsewhere)
    with pytest.raises(ToolDenied, match="no longer what it was"):
        await shell(policy, "ls")
    for tool, arguments in (("file_read", {"path": "secret"}), ("file_write", {"path": "new", "content": "x"})):
        with pytest.raises(ToolDenied, match="no longer what it was"):
            await perform(tool, policy, ENVIRON, arguments, "effect-1")
    assert names(elsewhere) == ["secret"]


@needs_bubblewrap
async def test_a_read_only_workspace_is_read_only_for_programs_too(tmp_path: Path) -> None:
    policy = await policy_of(tmp_path, "bubblewrap")
    reading = altered(policy, roots=(Root(tmp_path, False),))
    assert "exit code 0" not in await shell(reading, "touch", "made")
    assert not (tmp_path / "made").exists()
    assert await shell(policy, "touch", "made") == "exit code 0"


async def test_without_a_sandbox_that_works_the_agent_is_refused_unless_none_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sandbox, "_program", lambda: None)
    sandbox.probe.cache_clear()
    risk = 'allowed_tools = ["shell"]\nallowed_commands = ["ls"]\n'
    try:
        reasons = await refused(workspace(tmp_path, toml(risk=risk)))
        assert set(reasons) == {Cause.SANDBOX}
        assert "no program bwrap" in reasons[Cause.SANDBOX]
        written = await assemble(workspace(tmp_path, toml(risk=risk + 'sandbox_backend = "none"')))
        assert written.security.sandbox is Sandbox.NONE
        reading = await assemble(workspace(tmp_path, toml()))
        assert reading.security.sandbox is Sandbox.BUBBLEWRAP
    finally:
        sandbox.probe.cache_clear()


async def test_a_sandbox_that_is_there_and_does_not_work_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "bwrap"
    broken.write_text("#!/bin/sh\necho 'no user namespaces' >&2\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setattr(sandbox, "_program", lambda: str(broken))
    sandbox.probe.cache_clear()
    try:
        assert sandbox.probe(Sandbox.BUBBLEWRAP) == "bwrap does not work here: no user namespaces"
        assert sandbox.probe(Sandbox.NONE) is None
    finally:
        sandbox.probe.cache_clear()
