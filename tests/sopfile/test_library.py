import errno
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from definitions import HEADER, surroundings

from procedo.errors import InvalidSop, NotFound
from procedo.sopfile import Library, compile_files
from procedo.sopfile.folder import signature

STEPS = "## Steps\n\n1. **A**\n"


def put(root: Path, name: str, steps: str | None = STEPS, header: str | None = None) -> None:
    folder = root / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "SOP.toml").write_text(header or HEADER.replace("kiln-firing", name))
    if steps is not None:
        (folder / "SOP.md").write_text(steps)


def age(root: Path) -> None:
    """Give every file and folder a time that lies a while back: whatever changes from now on gets another."""
    for path in root.rglob("*"):
        status = path.stat()
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns - 60_000_000_000))


def touch(path: Path) -> None:
    """Give a file another time, as an edit a moment later would."""
    status = path.stat()
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns + 1_000_000))


@pytest.mark.requirement("C34")
def test_an_unknown_name_gets_near_names_and_the_folder_that_was_read(tmp_path: Path) -> None:
    put(tmp_path, "kiln-firing")
    library = Library(tmp_path, surroundings)
    with pytest.raises(NotFound) as caught:
        library.get("kilnfiring")
    assert caught.value.near == ("kiln-firing",)
    assert str(caught.value) == (
        f"There is no procedure 'kilnfiring' in {tmp_path}. Did you mean kiln-firing? Known are: kiln-firing."
    )
    assert library.get("kiln-firing").name == "kiln-firing"


@pytest.mark.requirement("C34")
def test_an_empty_library_says_where_it_looked_and_how_to_add_one(tmp_path: Path) -> None:
    for root in (tmp_path, tmp_path / "missing"):
        library = Library(root, surroundings)
        assert library.entries() == ()
        with pytest.raises(NotFound, match="The folder holds no procedure") as caught:
            library.get("x")
        assert str(root) in str(caught.value)


@pytest.mark.requirement("C34")
def test_a_broken_procedure_stays_in_the_catalogue_and_the_others_work(tmp_path: Path) -> None:
    put(tmp_path, "good")
    put(tmp_path, "bad", "## Steps\n\n1. **A**\n   - Tools: pump\n")
    put(tmp_path, "worse", header="not toml")
    library = Library(tmp_path, surroundings)
    entries = library.entries()
    assert [(entry.name, entry.sop is not None) for entry in entries] == [
        ("bad", False),
        ("good", True),
        ("worse", False),
    ]
    with pytest.raises(InvalidSop) as caught:
        library.get("bad")
    assert caught.value.problems == (str(entries[0].problems[0]),)
    assert caught.value.problems[0].startswith(f"{tmp_path}/bad/SOP.md:4: error[misspelt-bullet]")


def test_warnings_do_not_break_a_procedure(tmp_path: Path) -> None:
    put(tmp_path, "a", "## Steps\n\n1. **A**\n3. **B**\n")
    (entry,) = Library(tmp_path, surroundings).entries()
    assert entry.sop is not None
    assert [problem.code for problem in entry.problems] == ["step-number"]


def test_changed_files_are_read_again_and_unchanged_ones_are_not(tmp_path: Path) -> None:
    put(tmp_path, "a")
    age(tmp_path)
    library = Library(tmp_path, surroundings)
    first = library.entries()
    assert library.entries() is first
    (tmp_path / "a" / "SOP.md").write_text(STEPS + "2. **B**\n")
    second = library.get("a")
    assert second.sop is not None
    assert [step.title for step in second.sop.steps] == ["A", "B"]
    assert first[0].sop is not None
    assert second.sop.digest != first[0].sop.digest
    touch(tmp_path / "a" / "SOP.md")
    assert library.get("a").sop == second.sop
    put(tmp_path, "b")
    assert [entry.name for entry in library.entries()] == ["a", "b"]
    (tmp_path / "b" / "SOP.toml").unlink()
    (tmp_path / "b" / "SOP.md").unlink()
    assert [entry.name for entry in library.entries()] == ["a"]


def titles(library: Library, name: str) -> list[str]:
    sop = library.get(name).sop
    assert sop is not None
    return [step.title for step in sop.steps]


def rewrite(path: Path, text: str) -> None:
    """Other text in the same file, of the same size and with the same time of writing."""
    before = path.stat()
    path.write_text(text)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert path.stat().st_size == before.st_size


def test_a_file_that_keeps_its_size_and_its_time_of_writing_is_read_again(tmp_path: Path) -> None:
    put(tmp_path, "a")
    age(tmp_path)
    library = Library(tmp_path, surroundings)
    assert titles(library, "a") == ["A"]
    rewrite(tmp_path / "a" / "SOP.md", STEPS.replace("A", "B"))
    assert titles(library, "a") == ["B"]


def test_a_change_that_a_coarse_clock_gives_the_same_times_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path, "a")
    library = Library(tmp_path, surroundings)
    shown = signature(tmp_path)
    monkeypatch.setattr("procedo.sopfile.library.signature", lambda _root: shown)
    assert titles(library, "a") == ["A"]
    put(tmp_path, "a", STEPS.replace("A", "B"))
    assert titles(library, "a") == ["B"]


def circle(path: Path) -> None:
    path.unlink(missing_ok=True)
    path.symlink_to(path.name)


@pytest.mark.requirement("C34")
def test_links_in_a_circle_harm_nothing_but_what_they_stand_for(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        put(tmp_path, name)
    circle(tmp_path / "loop")
    circle(tmp_path / "loop.sop.md")
    circle(tmp_path / "a" / "notes")
    circle(tmp_path / "b" / "SOP.md")
    library = Library(tmp_path, surroundings)
    assert [(entry.name, [problem.code for problem in entry.problems]) for entry in library.entries()] == [
        ("a", []),
        ("b", ["unreadable-file", "no-steps"]),
        ("c", []),
    ]
    (tmp_path / "b" / "SOP.md").unlink()
    put(tmp_path, "b")
    assert library.get("b").problems == ()


@pytest.mark.requirement("C34")
@pytest.mark.parametrize("kept_out_of", ["b", "."])
def test_a_folder_that_cannot_be_listed_is_told_until_it_can(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept_out_of: str
) -> None:
    root = tmp_path / "sops"
    for name in ("a", "b"):
        put(root, name)
    age(root)
    listed = Path.iterdir

    def iterdir(path: Path) -> Iterator[Path]:
        if path == root / kept_out_of:
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return listed(path)

    library = Library(root, surroundings)
    with monkeypatch.context() as patch:
        patch.setattr(Path, "iterdir", iterdir)
        *others, shut = library.entries()
    assert [entry.name for entry in others] == (["a"] if kept_out_of == "b" else [])
    assert (shut.folder, shut.sop) == (root / kept_out_of, None)
    name = shut.folder.name
    assert [str(problem) for problem in shut.problems] == [
        f"{shut.folder}/{name}:0: error[unreadable-file]: the folder {name} cannot be read: Permission denied"
    ]
    assert [entry.name for entry in library.entries() if entry.sop is not None] == ["a", "b"]


def test_a_folder_that_goes_away_while_it_is_looked_at_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a", "b"):
        put(tmp_path, name)
    listed = Path.iterdir

    def iterdir(path: Path) -> Iterator[Path]:
        if path == tmp_path / "b":
            shutil.rmtree(path)
        return listed(path)

    monkeypatch.setattr(Path, "iterdir", iterdir)
    assert [entry.name for entry in Library(tmp_path, surroundings).entries()] == ["a"]


def test_a_change_of_the_surroundings_is_checked_again(tmp_path: Path) -> None:
    put(tmp_path, "a", "## Steps\n\n1. **A**\n   - agent: smith\n")
    agents = ["host", "smith"]
    library = Library(tmp_path, lambda: surroundings(agents=agents))
    assert library.get("a").problems == ()
    agents.remove("smith")
    assert [problem.code for problem in library.find("a").problems] == ["unknown-agent"]


def test_pinned_files_compile_to_the_same_procedure_without_the_library(tmp_path: Path) -> None:
    put(tmp_path, "a", "## Steps\n\n1. **A**\n   - agent: nobody-here\n   - id: a\n2. **B** {{steps.a}}\n")
    (entry,) = Library(tmp_path, surroundings).entries()
    assert entry.sop is None
    sop = compile_files(entry.files, entry.name)
    assert (sop.name, sop.steps[1].body, list(entry.files)) == ("a", "{{steps.1}}", ["SOP.toml", "SOP.md"])
    assert compile_files(dict(sorted(entry.files.items())), "x").digest == sop.digest


def test_pinned_files_with_an_error_are_refused_with_their_problems() -> None:
    with pytest.raises(InvalidSop) as caught:
        compile_files({"SOP.toml": HEADER, "SOP.md": "## Steps\n1. **A**\n   - next: 7\n"}, "kiln-firing")
    assert caught.value.problems == ("SOP.md:3: error[unknown-step]: next: there is no step 7",)
    with pytest.raises(InvalidSop):
        compile_files({}, "kiln-firing")


def test_procedures_that_start_each_other_are_told(tmp_path: Path) -> None:
    put(tmp_path, "a", "## Steps\n\n1. **A**\n   - sop: b\n")
    put(tmp_path, "b", "## Steps\n\n1. **A**\n   - sop: a\n2. **B**\n   - sop: c\n")
    put(tmp_path, "c")
    entries = Library(tmp_path, lambda: surroundings(sops=("a", "b", "c"))).entries()
    assert [(entry.name, [(p.line, p.code) for p in entry.problems]) for entry in entries] == [
        ("a", [(4, "sop-recursion")]),
        ("b", [(4, "sop-recursion")]),
        ("c", []),
    ]


def test_folders_that_are_no_procedures_are_left_alone(tmp_path: Path) -> None:
    put(tmp_path, "a")
    put(tmp_path, ".hidden")
    put(tmp_path, "_draft")
    (tmp_path / "assets").mkdir()
    (tmp_path / "assets" / "logo.svg").write_text("<svg/>")
    (tmp_path / "README.md").write_text("# Ours\n")
    assert [entry.name for entry in Library(tmp_path, surroundings).entries()] == ["a"]


def test_a_header_in_small_letters_is_told_and_not_read(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "sop.toml").write_text(HEADER)
    (entry,) = Library(tmp_path, surroundings).entries()
    assert (entry.sop, [problem.code for problem in entry.problems]) == (None, ["missing-header", "extra-file"])


AGENT_SOP = """# Update a dependency

## Overview

Update one dependency,
and leave the project working.

More text.

## Parameters

- **package** (required): The dependency
- **version** (optional, default: "newest"): The version to go to
- **notes** (optional): Anything else

**Constraints for parameter acquisition:**
- You MUST ask for all of them

## Steps

### 1. Look

Find out.

**Constraints:**
- You MUST NOT change any file
- tools: are mentioned here as text

### 2. Update

Do it.

## Examples

### 1. No step
"""


def test_an_agent_sop_loads_with_its_parameters_as_inputs(tmp_path: Path) -> None:
    (tmp_path / "update").mkdir()
    (tmp_path / "update" / "update.sop.md").write_text(AGENT_SOP)
    (tmp_path / "alone.sop.md").write_text(AGENT_SOP)
    alone, update = Library(tmp_path, surroundings).entries()
    assert (alone.name, update.name, alone.problems, update.problems) == ("alone", "update", (), ())
    sop = update.sop
    assert sop is not None
    assert sop.description == "Update one dependency, and leave the project working."
    assert [(step.number, step.title) for step in sop.steps] == [(1, "Look"), (2, "Update")]
    constraints = "**Constraints:**\n- You MUST NOT change any file\n- tools: are mentioned here as text"
    assert sop.steps[0].body == f"Find out.\n\n{constraints}"
    assert sop.inputs is not None
    assert sop.inputs.schema.source == {
        "type": "object",
        "properties": {
            "package": {"description": "The dependency"},
            "version": {"description": "The version to go to", "default": "newest"},
            "notes": {"description": "Anything else"},
        },
        "required": ["package"],
    }
    assert sop.inputs.defaults == {"version": "newest"}


def test_an_agent_sop_without_steps_or_with_odd_ones_is_told(tmp_path: Path) -> None:
    (tmp_path / "a.sop.md").write_text("# A\n\n## Overview\n\nX\n")
    (tmp_path / "b.sop.md").write_text("# B\n\n## Overview\n\nX\n\n## Steps\n\n### Look\n\n### 3. Act\n")
    first, second = Library(tmp_path, surroundings).entries()
    assert [(p.line, p.code) for p in first.problems] == [(1, "no-steps")]
    assert [(p.line, p.code) for p in second.problems] == [(9, "step-marker"), (11, "step-number")]
