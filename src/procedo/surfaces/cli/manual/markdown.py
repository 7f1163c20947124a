"""Markdown out of rows: tables, headings, and text that stays one cell."""

from collections.abc import Iterable, Sequence

__all__ = ["cell", "code", "page", "table"]


def code(text: str) -> str:
    """Text as code, also where it holds backticks; several lines become several pieces in one cell."""
    return "<br>".join(_quoted(line) for line in text.splitlines()) if text else ""


def _quoted(line: str) -> str:
    # Leading blanks would be lost: they are shown as blanks that stay.
    bare = line.lstrip(" ")
    indent = "&nbsp;" * (len(line) - len(bare))
    return f"{indent}`` {bare} ``" if "`" in bare else f"{indent}`{bare}`"


def cell(text: str) -> str:
    """Text that fits into one cell of a table."""
    return " ".join(text.split()).replace("|", "\\|")


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table. Cells are escaped here, so they are given as they are."""
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    lines += [f"| {' | '.join(cell(text) for text in row)} |" for row in rows]
    return "\n".join(lines)


def page(title: str, *blocks: str) -> str:
    """A page: its title, and blocks with an empty line between them."""
    return "\n\n".join([f"# {title}", *blocks]) + "\n"
