"""A host's file is replaced in one step, with a copy beside it, or left as it was."""

import os
import stat
from datetime import UTC, datetime
from pathlib import Path

import pytest

from procedo.errors import Conflict, InvalidConfig, Refused
from procedo.surfaces.cli.installation.file import read, replace

pytestmark = pytest.mark.requirement("install")

NOW = datetime(2026, 11, 29, 10, 30, tzinfo=UTC)
COPY = "mcp.json.20261129T103000Z.bak"


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o640])
def test_the_copy_and_the_file_keep_their_mode(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "mcp.json"
    path.write_bytes(b"old\r\n")
    path.chmod(mode)
    assert replace(read(path), "new\r\n", NOW) == tmp_path / COPY
    assert (path.read_bytes(), (tmp_path / COPY).read_bytes()) == (b"new\r\n", b"old\r\n")
    assert [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in names(tmp_path)] == [mode, mode]
    assert names(tmp_path) == ["mcp.json", COPY]


def test_a_second_change_in_the_same_second_keeps_both_copies(tmp_path: Path) -> None:
    path = tmp_path / "mcp.json"
    path.write_text("one")
    replace(read(path), "two", NOW)
    second = replace(read(path), "three", NOW)
    assert second is not None
    assert (second.read_text(), (tmp_path / COPY).read_text()) == ("two", "one")


def test_a_new_file_is_for_its_owner_alone_and_its_folders_are_made(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "mcp.json"
    assert replace(read(path), "{}", NOW) is None
    assert (path.read_text(), stat.S_IMODE(path.stat().st_mode)) == ("{}", 0o600)
    assert names(path.parent) == ["mcp.json"]


def test_a_link_keeps_pointing_at_the_file_that_is_changed(tmp_path: Path) -> None:
    target = tmp_path / "dotfiles" / "mcp.json"
    target.parent.mkdir()
    target.write_text("old")
    link = tmp_path / "mcp.json"
    link.symlink_to(target)
    copy = replace(read(link), "new", NOW)
    assert (link.is_symlink(), target.read_text(), copy) == (True, "new", target.parent / COPY)
    assert names(tmp_path) == ["dotfiles", "mcp.json"]


def test_a_byte_order_mark_stays(tmp_path: Path) -> None:
    path = tmp_path / "mcp.json"
    path.write_bytes(b"\xef\xbb\xbf{}")
    file = read(path)
    assert file.text == "{}"
    replace(file, "[]", NOW)
    assert path.read_bytes() == b"\xef\xbb\xbf[]"


@pytest.mark.parametrize("later", [b"changed", None])
def test_a_file_that_changed_meanwhile_is_left_alone(tmp_path: Path, later: bytes | None) -> None:
    path = tmp_path / "mcp.json"
    path.write_bytes(b"old")
    file = read(path)
    path.unlink()
    if later is not None:
        path.write_bytes(later)
    before = names(tmp_path)
    with pytest.raises(Conflict, match="changed by another program"):
        replace(file, "new", NOW)
    assert names(tmp_path) == before
    assert later is None or path.read_bytes() == later


def test_a_file_that_came_meanwhile_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "mcp.json"
    file = read(path)
    path.write_bytes(b"new here")
    with pytest.raises(Conflict):
        replace(file, "ours", NOW)
    assert (path.read_bytes(), names(tmp_path)) == (b"new here", ["mcp.json"])


def test_a_read_only_file_is_refused_even_for_the_superuser(tmp_path: Path) -> None:
    path = tmp_path / "mcp.json"
    path.write_text("old")
    path.chmod(0o444)
    with pytest.raises(Refused, match="read-only"):
        replace(read(path), "new", NOW)
    assert (path.read_text(), names(tmp_path)) == ("old", ["mcp.json"])


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    folder, pipe, loop = tmp_path / "folder", tmp_path / "pipe", tmp_path / "loop"
    folder.mkdir()
    os.mkfifo(pipe)
    loop.symlink_to(loop)
    for path in (folder, pipe, loop, folder / "under" / ".." / ".." / "pipe"):
        with pytest.raises(Refused, match="cannot be edited"):
            read(path)


def test_text_of_another_encoding_is_refused_with_its_place(tmp_path: Path) -> None:
    path = tmp_path / "mcp.json"
    path.write_bytes(b'{\n "a": "\xe4"}')
    with pytest.raises(InvalidConfig, match=r"mcp\.json:2:8: the file is not UTF-8"):
        read(path)


def test_a_huge_file_is_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "mcp.json"
    with path.open("wb") as stream:
        stream.truncate(64 * 1024 * 1024 + 1)
    with pytest.raises(Refused, match="larger than 64 MiB"):
        read(path)


def test_where_the_folder_takes_no_file_nothing_is_changed(tmp_path: Path) -> None:
    (tmp_path / "blocked").write_text("a file where a folder is wanted")
    with pytest.raises(Refused, match="cannot be edited"):
        replace(read(tmp_path / "blocked" / "mcp.json"), "{}", NOW)
    assert names(tmp_path) == ["blocked"]
