import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import anyio
import pytest
from agent_workspace import assemble, toml, workspace

from procedo.agents.parts import Root, SecurityPolicy
from procedo.agents.ports import ToolDenied, ToolFailed
from procedo.agents.tools import beneath, files
from procedo.core.altered import altered
from procedo.core.model import Json

Call = Callable[[SecurityPolicy, Json], str]

READERS: dict[str, tuple[Call, Callable[[str], Json]]] = {
    "read": (files.read, lambda path: {"path": path}),
    "list": (files.listing, lambda path: {"path": path}),
    "search": (files.find, lambda path: {"path": path, "text": "a"}),
}


@pytest.fixture
def policy(tmp_path: Path) -> SecurityPolicy:
    home = tmp_path / "home"
    home.mkdir()
    (home / "inner").mkdir()
    (home / "inner" / "a.txt").write_text("one\ntwo\nthree\n")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret.txt").write_text("a secret")
    risk = 'allowed_tools = ["*"]\nforbidden_paths = ["vault"]'
    return anyio.run(assemble, workspace(home, toml(risk=risk))).security


@pytest.fixture(params=["kernel", "walk"])
def either(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ways of opening a path; the kernel's own where there is one."""
    if request.param == "walk":
        monkeypatch.setattr(beneath, "_syscall", lambda: None)
    else:
        assert beneath.kernel_can(), "this kernel has no openat2; the other way is tested"


def home_of(policy: SecurityPolicy) -> Path:
    return policy.roots[0].path


@pytest.mark.usefixtures("either")
def test_files_of_the_workspace_are_read_listed_and_searched(policy: SecurityPolicy) -> None:
    assert files.read(policy, {"path": "inner/a.txt"}) == "one\ntwo\nthree\n"
    assert files.read(policy, {"path": str(home_of(policy) / "inner/a.txt"), "line": 2, "lines": 1}) == "two\n"
    sizes = [f"{path.name} ({path.stat().st_size} bytes)" for path in sorted(home_of(policy).glob("*.toml"))]
    assert files.listing(policy, {}).splitlines() == ["inner/", *sizes]
    assert files.listing(policy, {"depth": 2}).splitlines()[1] == "inner/a.txt (14 bytes)"
    assert files.find(policy, {"text": "two"}) == "inner/a.txt:2: two"
    assert files.find(policy, {"text": "TWO", "case": False}) == "inner/a.txt:2: two"
    assert files.find(policy, {"name": "*.txt"}) == "inner/a.txt"
    assert files.find(policy, {"text": "four"}) == "(nothing found)"


@pytest.mark.usefixtures("either")
@pytest.mark.parametrize("how", READERS)
@pytest.mark.parametrize(
    "way", ["dots", "absolute", "link to file", "link to folder", "absolute link", "dots behind link"]
)
@pytest.mark.requirement("file-scope")
def test_nothing_leads_out_of_the_workspace(policy: SecurityPolicy, way: str, how: str) -> None:
    home = home_of(policy)
    outside = home.parent / "outside"
    paths = {
        "dots": "../outside",
        "absolute": str(outside),
        "link to file": "link",
        "link to folder": "door",
        "absolute link": "far",
        "dots behind link": "inner/../../outside",
    }
    (home / "link").symlink_to("../outside/secret.txt")
    (home / "door").symlink_to("../outside")
    (home / "far").symlink_to(outside)
    path = paths[way]
    if how == "read" and way != "link to file":
        path += "/secret.txt"
    call, arguments = READERS[how]
    with pytest.raises((ToolDenied, ToolFailed)) as caught:
        call(policy, arguments(path))
    assert "a secret" not in str(caught.value)
    assert how == "read" or "secret" not in str(caught.value)


def test_a_link_that_stays_inside_is_followed_where_the_kernel_can(policy: SecurityPolicy) -> None:
    (home_of(policy) / "near").symlink_to("inner/a.txt")
    assert files.read(policy, {"path": "near"}) == "one\ntwo\nthree\n"


@pytest.mark.usefixtures("either")
@pytest.mark.parametrize("path", ["vault/key", "./vault/key", "inner/../vault/key"])
def test_a_forbidden_path_is_neither_read_nor_written_nor_shown(policy: SecurityPolicy, path: str) -> None:
    home = home_of(policy)
    (home / "vault").mkdir()
    (home / "vault" / "key").write_text("a key")
    with pytest.raises((ToolDenied, ToolFailed)):
        files.read(policy, {"path": path})
    with pytest.raises((ToolDenied, ToolFailed)):
        files.write(policy, {"path": path, "content": "x"})
    assert (home / "vault" / "key").read_text() == "a key"
    assert "vault" not in files.listing(policy, {"depth": 3})
    assert files.find(policy, {"text": "a key"}) == "(nothing found)"


@pytest.mark.requirement("file-scope")
def test_a_forbidden_path_is_not_reached_through_a_link(policy: SecurityPolicy) -> None:
    home = home_of(policy)
    (home / "vault").mkdir()
    (home / "vault" / "key").write_text("a key")
    (home / "way").symlink_to("vault")
    with pytest.raises(ToolDenied, match="forbidden"):
        files.read(policy, {"path": "way/key"})
    with pytest.raises(ToolDenied, match="forbidden"):
        files.write(policy, {"path": "way/new", "content": "x"})
    assert sorted(path.name for path in (home / "vault").iterdir()) == ["key"]


@pytest.mark.parametrize("path", ["procedo.toml", "script.toml", "sops/x/SOP.toml", ".procedo/procedo.db"])
def test_an_agent_cannot_write_its_own_permissions_or_the_record(policy: SecurityPolicy, path: str) -> None:
    target = home_of(policy) / path
    before = target.read_text() if target.exists() else None
    with pytest.raises(ToolDenied):
        files.write(policy, {"path": path, "content": "x"})
    assert (target.read_text() if target.exists() else None) == before
    assert files.write(policy, {"path": "inner/b.txt", "content": "x"}) == "wrote 1 bytes to inner/b.txt"


@pytest.mark.usefixtures("either")
def test_a_file_is_written_whole_with_its_mode_kept_and_missing_folders_made(policy: SecurityPolicy) -> None:
    home = home_of(policy)
    files.write(policy, {"path": "new/deep/a.txt", "content": "ä"})
    assert (home / "new/deep/a.txt").read_text() == "ä"
    (home / "run.sh").write_text("x")
    (home / "run.sh").chmod(0o750)
    files.write(policy, {"path": "run.sh", "content": "y"})
    assert ((home / "run.sh").read_text(), (home / "run.sh").stat().st_mode & 0o777) == ("y", 0o750)
    assert [path.name for path in home.iterdir() if path.name.endswith(".tmp")] == []


@pytest.mark.usefixtures("either")
@pytest.mark.requirement("file-scope")
def test_writing_never_leaves_the_workspace(policy: SecurityPolicy) -> None:
    home = home_of(policy)
    (home / "door").symlink_to("../outside")
    (home / "leak").symlink_to("../outside/secret.txt")
    for path in ("../outside/new", "door/new", "leak", str(home.parent / "outside" / "new"), "no/../../outside/new"):
        with pytest.raises((ToolDenied, ToolFailed)):
            files.write(policy, {"path": path, "content": "x"})
    assert [(p.name, p.read_text()) for p in (home.parent / "outside").iterdir()] == [("secret.txt", "a secret")]


def test_a_workspace_that_may_be_read_only_is_not_written(policy: SecurityPolicy) -> None:
    reading = altered(policy, roots=(Root(home_of(policy), False),))
    with pytest.raises(ToolDenied, match="read only"):
        files.write(reading, {"path": "b.txt", "content": "x"})
    assert files.read(reading, {"path": "inner/a.txt"}).startswith("one")


def test_an_edit_needs_one_clear_place(policy: SecurityPolicy) -> None:
    files.write(policy, {"path": "b.txt", "content": "a b a"})
    with pytest.raises(ToolFailed, match="2 times"):
        files.edit(policy, {"path": "b.txt", "old": "a", "new": "c"})
    with pytest.raises(ToolFailed, match="does not hold"):
        files.edit(policy, {"path": "b.txt", "old": "x", "new": "c"})
    assert files.edit(policy, {"path": "b.txt", "old": "b", "new": "c"}) == "replaced 1 in b.txt"
    assert files.edit(policy, {"path": "b.txt", "old": "a", "new": "", "all": True}) == "replaced 2 in b.txt"
    assert files.read(policy, {"path": "b.txt"}) == " c "


def test_what_is_no_text_or_no_file_or_too_large_is_told(policy: SecurityPolicy) -> None:
    home = home_of(policy)
    (home / "raw").write_bytes(b"\xff\xfe")
    os.mkfifo(home / "pipe")
    (home / "big").write_text("x" * 11)
    small = altered(policy, max_bytes=10)
    for path, why in (
        ("raw", "no text"),
        ("pipe", "no regular file"),
        ("inner", "no regular file"),
        ("big", "11 bytes"),
    ):
        with pytest.raises(ToolFailed, match=why):
            files.read(small, {"path": path})
    with pytest.raises(ToolFailed, match="11 bytes"):
        files.write(small, {"path": "b.txt", "content": "x" * 11})
    with pytest.raises(ToolFailed, match="NUL"):
        files.read(policy, {"path": "a\0b"})


def opened_below(home: Path) -> list[str]:
    """The files and folders of a workspace that this process holds open; others may come and go meanwhile."""
    found = []
    for fd in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):
            found.append(str(fd.readlink()))
    return [path for path in found if path.startswith(str(home))]


def test_no_descriptor_is_left_open(policy: SecurityPolicy) -> None:
    home = home_of(policy)
    with (home / "inner/a.txt").open():
        assert opened_below(home) == [str(home / "inner/a.txt")]
    for _ in range(3):
        files.read(policy, {"path": "inner/a.txt"})
        files.listing(policy, {"depth": 4})
        files.write(policy, {"path": "n/m/b.txt", "content": "x"})
        for path in ("../x", "nothing/here", "inner"):
            with pytest.raises((ToolDenied, ToolFailed)):
                files.read(policy, {"path": path})
            with pytest.raises((ToolDenied, ToolFailed)):
                files.write(
                    policy, {"path": f"{path}/", "content": "x"} if path == "inner" else {"path": "../x", "content": ""}
                )
    assert opened_below(home) == []
