"""How much of a long text is shown: its beginning and its end, and how many characters are left out between them."""

__all__ = ["excerpt"]


def excerpt(text: str, limit: int, place: str) -> tuple[str, int]:
    """The text, or what is shown of it, with the number of characters left out; `place` says where it is whole."""
    if len(text) <= limit:
        return text, 0
    head, tail = limit * 3 // 4, limit // 4
    left_out = len(text) - head - tail
    note = f"\n[{left_out} characters left out; the whole text is in {place}]\n"
    return f"{text[:head]}{note}{text[len(text) - tail :]}", left_out
