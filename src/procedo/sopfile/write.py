"""Writes a definition: the same procedure comes out when the files are read again, or nothing is written."""

import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from procedo.errors import BadArgument, Conflict, Refused
from procedo.sopfile.agentsop import SUFFIX
from procedo.sopfile.compilation import is_plain_name
from procedo.sopfile.definition import HEADER_FILE, STEPS_FILE, read_source
from procedo.sopfile.fieldtext import bullets, toml_value
from procedo.sopfile.problems import Findings
from procedo.sopfile.reference import HEADER, STEP, Field
from procedo.sopfile.source import SopSource, StepSource
from procedo.sopfile.tomltext import pair, table

__all__ = ["render", "save"]


def render(source: SopSource) -> dict[str, str]:
    """The files of a definition by name: `SOP.toml`, and `SOP.md` where its steps stand there.

    Comments of the header stay above their keys; those inside an array move above it. Raises `Refused`
    when the definition cannot be written so that it reads back as the same.
    """
    if source.file.endswith(SUFFIX):
        raise Refused("cannot_write", f"{source.file} is an Agent SOP; it is read and not written.")
    try:
        files = {HEADER_FILE: _header(source)}
    except ValueError as error:
        raise Refused("cannot_write", f"The definition cannot be written: {error}.") from error
    if source.markdown:
        files[STEPS_FILE] = _steps(source)
    again = read_source(files, "", Findings())
    if again is None or _bare(again) != _bare(source):
        message = f"The definition cannot be written so that it reads back as the same: {_difference(source, again)}."
        raise Refused("cannot_write", message, "Nothing was changed.")
    return files


def save(root: Path, folder: Path | None, source: SopSource) -> Path:
    """Write a definition into the folder that bears its name, and return that folder.

    `folder` is where it stands now (None: it is new). Each file is replaced as a whole, and a file that
    cannot be replaced leaves the earlier ones as they were. Raises `Conflict` when the name is taken by
    another folder, `BadArgument` for a name that is no plain one, `Refused` as `render`.
    """
    name = source.text("name")
    if not is_plain_name(name):
        raise BadArgument("bad_name", f"{name!r} cannot be the name of a procedure.", "Use one plain name.")
    target = root / name
    if folder != target and os.path.lexists(target):
        raise Conflict("name_taken", f"{target} is there already.", "Choose another name; nothing was changed.")
    files = render(source)
    if folder is None:
        target.mkdir(parents=True)
    _replace(folder or target, files)
    if folder is not None and folder != target:
        folder.rename(target)
    return target


def _bare(source: SopSource) -> SopSource:
    """The source without what writing may move: comments, and white space around the steps."""
    before = source.before.strip() if source.markdown else ""
    return replace(source, comments={}, before=before or "## Steps", after=source.after.strip())


def _difference(source: SopSource, again: SopSource | None) -> str:
    if again is None or source.header != again.header:
        return "the header differs"
    if len(source.steps) != len(again.steps):
        return f"{len(source.steps)} steps would become {len(again.steps)}"
    changed = [step.number for step, other in zip(source.steps, again.steps, strict=True) if step != other]
    return f"step {changed[0]} would change" if changed else "text around the steps would change"


# --- SOP.toml ------------------------------------------------------------------------------------


def _header(source: SopSource) -> str:
    single = {name: value for name, value in source.extensions.items() if not isinstance(value, Mapping)}
    blocks = [[line for name, value in single.items() for line in _commented(source, (name,), [pair(name, value)])]]
    blocks.append(list(_sop_table(source)))
    if source.inputs is not None:
        blocks.append(list(_commented(source, ("inputs",), table(("inputs",), source.inputs.value))))
    for index, trigger in enumerate(source.triggers):
        settings = {"type": trigger.type, **trigger.settings, **trigger.extensions}
        blocks.append(list(_element(source, "triggers", index, (pair(*item) for item in settings.items()))))
    for index, (step, (x, y)) in enumerate(source.positions.items()):
        values = {"step": step, "x": x, "y": y}
        blocks.append(list(_element(source, "positions", index, (pair(*item) for item in values.items()))))
    for index, one in enumerate(() if source.markdown else source.steps):
        blocks.append(list(_element(source, "steps", index, _step_table(one))))
    for name, value in source.extensions.items():
        if name not in single:
            blocks.append(list(_commented(source, (name,), table((name,), value))))
    blocks.append(list(source.comments.get((), ())))
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


def _sop_table(source: SopSource) -> Iterator[str]:
    yield from _commented(source, ("sop",), ["[sop]"], exact=True)
    for field in HEADER.values():
        if field.name in source.header:
            value = toml_value(field.type, source.header[field.name].value)
            yield from _commented(source, ("sop", field.name), [pair(field.name, value)])
    for name, value in source.sop_extensions.items():
        yield from _commented(source, ("sop", name), [pair(name, value)])


def _element(source: SopSource, name: str, index: int, lines: Iterable[str]) -> Iterator[str]:
    return _commented(source, (name, index), [f"[[{name}]]", *lines])


def _commented(
    source: SopSource, path: tuple[str | int, ...], lines: Iterable[str], *, exact: bool = False
) -> Iterator[str]:
    """The lines with the comments above them that belong to the path, or to anything inside it."""
    for place, comments in source.comments.items():
        top = place == path or (len(path) > 1 and place == path[:1] and path[1] == 0)
        if top or (not exact and place[: len(path)] == path):
            yield from comments
    yield from lines


def _step_table(step: StepSource) -> Iterator[str]:
    yield pair("number", step.number)
    if step.title:
        yield pair("title", step.title)
    if step.body:
        yield pair("body", step.body)
    below: dict[str, dict[str, object]] = {}
    for field in STEP.values():
        if field.name not in step.fields:
            continue
        value = toml_value(field.type, step.fields[field.name].value)
        outer, _, inner = field.name.partition(".")
        if inner:
            below.setdefault(outer, {})[inner] = value
        else:
            yield pair(field.name, value)
    yield from (pair(name, value) for name, value in step.extensions.items())
    yield from (pair(name, values) for name, values in below.items())


# --- SOP.md --------------------------------------------------------------------------------------


def _steps(source: SopSource) -> str:
    parts = [source.before.rstrip("\n") or "## Steps"]
    parts += ["", *(line for step in source.steps for line in (*_step_lines(step), ""))]
    if source.after.strip():
        parts += [source.after.strip("\n"), ""]
    return "\n".join(parts)


def _step_lines(step: StepSource) -> Iterator[str]:
    marker = f"{step.number}. "
    indent = " " * len(marker)
    yield f"{marker}**{step.title}**"
    for name, field in STEP.items():
        if field.bullets and name in step.fields:
            yield from _bullets(field, step, indent)
    for name, value in step.extensions.items():
        yield f"{indent}- {name}: {_json(value)}"
    if step.body:
        yield ""
        yield from (f"{indent}{line}" if line else "" for line in step.body.split("\n"))


def _bullets(field: Field, step: StepSource, indent: str) -> Iterator[str]:
    for text in bullets(field.type, step.fields[field.name].value):
        first, *others = text.split("\n")
        yield f"{indent}- {field.bullets[0]}: {first}".rstrip()
        yield from (f"{indent}  {line}" for line in others)


def _json(value: object) -> str:
    return next(iter(bullets(STEP["with"].type, value)))


# --- files ---------------------------------------------------------------------------------------


def _replace(folder: Path, files: Mapping[str, str]) -> None:
    """Replace files one by one; when one cannot be, those before it get their old content back."""
    old: dict[str, bytes | None] = {}
    try:
        for name, text in files.items():
            path = folder / name
            content = path.read_bytes() if path.exists() else None
            _put(path, text.encode())
            old[name] = content
    except OSError as error:
        for name, content in old.items():
            (folder / name).unlink() if content is None else _put(folder / name, content)
        message = f"{folder} cannot be written: {error.strerror}."
        raise Refused("cannot_write", message, "Nothing was changed.") from error


def _put(path: Path, content: bytes) -> None:
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).chmod(0o644)
        Path(temporary).replace(path)
    except OSError:
        Path(temporary).unlink(missing_ok=True)
        raise
