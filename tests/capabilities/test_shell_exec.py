import asyncio
import os
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import anyio
import pytest
from lifeline import Lifeline

from procedo.capabilities import process
from procedo.capabilities.registry import Registry
from procedo.config.capability_settings import ShellSettings
from procedo.core.model import Json
from procedo.errors import BadArgument, Refused
from procedo.ports import OutcomeUnknown

Perform = Callable[[Registry, str, Json], Coroutine[Any, Any, Json]]
Build = Callable[..., Registry]
pytestmark = pytest.mark.anyio
STUBBORN = "signal.signal(signal.SIGTERM, signal.SIG_IGN)"
FORKED = "os.fork()"
NICE = "signal.signal(signal.SIGTERM, lambda *_: (time.sleep(0.2), open('tidied', 'w').close(), sys.exit(0)))"


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


async def test_a_program_gets_its_arguments_as_they_are_and_its_outputs_come_back(
    shell_registry: Build, perform: Perform
) -> None:
    code = "import sys; print(sys.argv[1:]); print(sys.stdin.read(), file=sys.stderr)"
    arguments = {"argv": [*python(code), "$(id); *", "a b", ""], "stdin": "grün"}

    assert await perform(shell_registry(), "shell.exec", arguments) == {
        "exit_code": 0,
        "stdout": "['$(id); *', 'a b', '']\n",
        "stderr": "grün\n",
    }


async def test_a_program_that_does_not_read_its_input_is_no_error(shell_registry: Build, perform: Perform) -> None:
    arguments = {"argv": python("print(1)"), "stdin": "x" * 1_000_000}

    assert (await perform(shell_registry(), "shell.exec", arguments))["stdout"] == "1\n"


async def test_an_exit_code_other_than_zero_is_a_failed_attempt_unless_it_is_accepted(
    shell_registry: Build, perform: Perform
) -> None:
    arguments = {"argv": python("import sys; print('no pump', file=sys.stderr); sys.exit(3)")}
    registry = shell_registry()

    with pytest.raises(Refused) as caught:
        await perform(registry, "shell.exec", arguments)
    assert str(caught.value) == f"shell.exec: {sys.executable} ended with exit code 3: no pump."

    result = await perform(registry, "shell.exec", arguments | {"accept_exit": [3]})
    assert result == {"exit_code": 3, "stdout": "", "stderr": "no pump\n"}


async def test_only_listed_programs_run(shell_registry: Build, perform: Perform, tmp_path: Path) -> None:
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("good", "bad"):
        (folder / name).write_text(f"#!/bin/sh\necho {name}\n")
        (folder / name).chmod(0o755)
    (folder / "linked").symlink_to(folder / "good")
    (tmp_path / "way").symlink_to(folder)
    registry = shell_registry({"PATH": str(folder)}, allowed_commands=frozenset({"good", "absent"}))

    for allowed in ("good", str(folder / "good"), str(tmp_path / "way" / "good")):
        assert (await perform(registry, "shell.exec", {"argv": [allowed]}))["stdout"] == "good\n"
    refused = ["bad", str(folder / "bad"), str(folder / "linked"), "linked", "./good", "../bin/good", "", "good bad"]
    for name in refused:
        with pytest.raises(Refused) as caught:
            await perform(registry, "shell.exec", {"argv": [name]})
        assert caught.value.code == "command_not_allowed"
    with pytest.raises(Refused, match="there is no such program"):
        await perform(registry, "shell.exec", {"argv": ["absent"]})


async def test_a_listed_path_is_that_program_and_no_other_of_its_name(
    shell_registry: Build, perform: Perform, tmp_path: Path
) -> None:
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "tool").write_text(f"#!/bin/sh\necho {folder}\n")
        (tmp_path / folder / "tool").chmod(0o755)
    listed = frozenset({str(tmp_path / "one" / "tool")})

    registry = shell_registry({"PATH": str(tmp_path / "one")}, allowed_commands=listed)
    assert (await perform(registry, "shell.exec", {"argv": ["tool"]}))["stdout"] == "one\n"

    shadowed = shell_registry({"PATH": str(tmp_path / "two")}, allowed_commands=listed)
    with pytest.raises(Refused, match="is not allowed"):
        await perform(shadowed, "shell.exec", {"argv": ["tool"]})


async def test_the_folder_where_the_server_happens_to_be_is_never_searched(
    shell_registry: Build, perform: Perform, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tool").write_text("#!/bin/sh\necho planted\n")
    (tmp_path / "tool").chmod(0o755)
    monkeypatch.chdir(tmp_path)
    listed = frozenset({"tool"})

    for path in ("", ".", f":{os.defpath}"):
        with pytest.raises(Refused):
            await perform(shell_registry({"PATH": path}, allowed_commands=listed), "shell.exec", {"argv": ["tool"]})

    found = shell_registry({"PATH": str(tmp_path)}, allowed_commands=listed)
    assert (await perform(found, "shell.exec", {"argv": ["tool"]}))["stdout"] == "planted\n"


async def test_only_listed_variables_are_passed_on(shell_registry: Build, perform: Perform) -> None:
    environ = {"PATH": os.defpath, "LANG": "C.UTF-8", "TOKEN": "secret"}
    registry = shell_registry(environ, env=frozenset({"LANG", "ABSENT"}), allowed_commands=frozenset({"env"}))

    assert (await perform(registry, "shell.exec", {"argv": ["env"]}))["stdout"] == "LANG=C.UTF-8\n"


async def test_a_program_runs_inside_the_workspace_only(
    shell_registry: Build, shell: ShellSettings, perform: Perform
) -> None:
    (shell.root / "sub").mkdir()
    (shell.root / "file").touch()
    (shell.root / "out").symlink_to(shell.root.parent)
    registry = shell_registry(cwd=shell.root / "sub")
    where = python("import os; print(os.getcwd())")

    for named, folder in ((None, "sub"), (".", "sub"), ("..", "."), (str(shell.root), ".")):
        arguments = {"argv": where} if named is None else {"argv": where, "cwd": named}
        expected = str((shell.root / folder).resolve())
        assert (await perform(registry, "shell.exec", arguments))["stdout"] == f"{expected}\n"
    for named in ("../..", "../out", "/", "/tmp"):  # noqa: S108  # refused, not used
        with pytest.raises(Refused, match="is outside of the workspace"):
            await perform(registry, "shell.exec", {"argv": where, "cwd": named})
    for named in ("../file", "absent"):
        with pytest.raises(Refused, match="is no folder"):
            await perform(registry, "shell.exec", {"argv": where, "cwd": named})


@pytest.mark.parametrize(
    "arguments",
    [{}, {"argv": []}, {"argv": "ls -l"}, {"argv": [5]}, {"argv": ["a\0b"]}, {"argv": ["a"], "cwd": "a\0b"}],
)
async def test_arguments_that_are_no_argument_list_are_refused(
    shell_registry: Build, perform: Perform, arguments: Json
) -> None:
    registry = shell_registry(allowed_commands=frozenset({"a", "ls"}))

    with pytest.raises((BadArgument, Refused)):
        await perform(registry, "shell.exec", arguments)


async def test_nothing_runs_unless_it_is_enabled(shell_registry: Build, perform: Perform) -> None:
    arguments = {"argv": python("print(1)")}

    with pytest.raises(Refused, match=r"it is off; in procedo\.toml: \[capabilities\.shell\] enabled = true"):
        await perform(shell_registry(enabled=False), "shell.exec", arguments)
    with pytest.raises(Refused, match="no command is allowed"):
        await perform(shell_registry(allowed_commands=frozenset()), "shell.exec", arguments)

    assert (await perform(shell_registry(), "shell.exec", arguments))["stdout"] == "1\n"


async def test_a_program_that_cannot_be_started_is_known_not_to_have_run(
    shell_registry: Build, perform: Perform, tmp_path: Path
) -> None:
    broken = tmp_path / "broken"
    broken.write_text("#!/no/such/interpreter\n")
    broken.chmod(0o755)

    with pytest.raises(Refused) as caught:
        await perform(shell_registry(allowed_commands=frozenset({str(broken)})), "shell.exec", {"argv": [str(broken)]})

    assert caught.value.code == "not_started"


async def test_of_a_long_output_the_beginning_is_kept_and_the_cut_is_told(
    shell_registry: Build, perform: Perform
) -> None:
    arguments = {"argv": python("import sys; sys.stdout.write('aü' * 1_000_000); sys.stderr.write('short')")}

    result = await perform(shell_registry(max_output_bytes=5), "shell.exec", arguments)

    assert result == {"exit_code": 0, "stdout": "aüa", "stderr": "short", "cut": ["stdout"]}


async def test_an_output_of_just_the_limit_is_whole(shell_registry: Build, perform: Perform) -> None:
    arguments = {"argv": python("print('abcd')")}

    result = await perform(shell_registry(max_output_bytes=5), "shell.exec", arguments)

    assert result == {"exit_code": 0, "stdout": "abcd\n", "stderr": ""}


async def test_stray_bytes_are_replaced(shell_registry: Build, perform: Perform) -> None:
    arguments = {"argv": python(r"import sys; sys.stdout.buffer.write(b'\xffok\xc3')")}

    assert (await perform(shell_registry(), "shell.exec", arguments))["stdout"] == "\ufffdok\ufffd"


@pytest.mark.parametrize("then", [FORKED, f"{STUBBORN}; {FORKED}"])
async def test_a_program_over_its_time_is_ended_with_its_children_and_its_outcome_is_unknown(
    shell_registry: Build, perform: Perform, lifeline: Lifeline, then: str
) -> None:
    for seconds in (2, 60):  # a busy machine may need more than two to start it
        with pytest.raises(OutcomeUnknown, match=f"did not end within {seconds} s; it may have acted"):
            await perform(shell_registry(timeout_s=seconds), "shell.exec", {"argv": python(lifeline.code(then))})
        if up := await lifeline.was_up():
            break

    assert up
    await lifeline.all_gone()


async def test_a_program_over_its_time_is_a_failed_attempt_when_a_repeat_does_no_harm(
    shell_registry: Build, perform: Perform
) -> None:
    arguments = {"argv": python("import signal; signal.pause()"), "idempotent": True}

    with pytest.raises(Refused, match=r"did not end within 0\.1 s"):
        await perform(shell_registry(timeout_s=0.1), "shell.exec", arguments)


async def test_a_program_killed_by_a_signal_may_have_acted(shell_registry: Build, perform: Perform) -> None:
    code = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"

    with pytest.raises(OutcomeUnknown, match="was stopped by signal 9"):
        await perform(shell_registry(), "shell.exec", {"argv": python(code)})


@pytest.mark.parametrize("then", [NICE, STUBBORN, FORKED, f"{STUBBORN}; {FORKED}"])
async def test_a_cancelled_call_leaves_no_process_behind(
    shell_registry: Build, perform: Perform, lifeline: Lifeline, then: str
) -> None:
    task = asyncio.ensure_future(perform(shell_registry(), "shell.exec", {"argv": python(lifeline.code(then))}))
    await lifeline.up()

    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    await lifeline.all_gone()


async def test_a_program_in_a_cancelled_scope_may_tidy_up_first(
    shell_registry: Build,
    shell: ShellSettings,
    perform: Perform,
    lifeline: Lifeline,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert process.GRACE_S > 0.2  # it is enough on a machine at rest; a busy one takes longer over everything
    monkeypatch.setattr(process, "GRACE_S", 60.0)
    async with anyio.create_task_group() as group:
        group.start_soon(perform, shell_registry(), "shell.exec", {"argv": python(lifeline.code(NICE))})
        await lifeline.up()
        group.cancel_scope.cancel()

    await lifeline.all_gone()
    assert (shell.root / "tidied").exists()


def children() -> set[str]:
    """The processes that this one began, running or dead."""
    return {pid for file in Path("/proc/self/task").glob("*/children") for pid in file.read_text().split()}


async def test_a_call_that_is_cancelled_while_it_starts_leaves_no_process_behind(
    shell_registry: Build, perform: Perform
) -> None:
    arguments = {"argv": python("import signal; signal.pause()")}
    before, others = asyncio.all_tasks(), children()
    task = asyncio.ensure_future(perform(shell_registry(), "shell.exec", arguments))
    await asyncio.sleep(0)  # the call has begun, and its process is not yet known to it

    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert asyncio.all_tasks() == before
    assert children() <= others


async def test_what_a_program_leaves_running_ends_with_it(
    shell_registry: Build, perform: Perform, lifeline: Lifeline
) -> None:
    started = lifeline.code("if os.fork(): line.sendall(b'.'); print('done', flush=True); os._exit(0)")

    result = await perform(shell_registry(), "shell.exec", {"argv": python(started)})

    assert result == {"exit_code": 0, "stdout": "done\n", "stderr": ""}
    await lifeline.up()
    await lifeline.all_gone()
