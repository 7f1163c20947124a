"""What is said of a configuration file that cannot be edited."""

__all__ = ["Malformed", "place"]


class Malformed(Exception):
    """The text is not what its format allows, or not what can be edited safely. Lines and columns count from 1."""

    def __init__(self, line: int, column: int, message: str) -> None:
        super().__init__(f"{line}:{column}: {message}")
        self.line = line
        self.column = column
        self.message = message


def place(text: str, at: int) -> tuple[int, int]:
    """The line and the column of an offset."""
    return text.count("\n", 0, at) + 1, at - (text.rfind("\n", 0, at) + 1) + 1
