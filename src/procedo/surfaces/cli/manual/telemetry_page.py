"""The page about what the server tells about itself: metrics, spans, lines of the log."""

from procedo.surfaces.cli.manual.markdown import page

__all__ = ["telemetry_page"]


def telemetry_page() -> str:
    """Every metric, every span, every line of the log."""
    # Imported here: only this page needs it.
    from procedo.telemetry import instruments, lines, spans

    return page(
        "Reference: metrics, spans, log lines",
        "Everything that the server tells about itself, as names that stay. No input, output or comment is in any of "
        "it.",
        "## Metrics",
        instruments.reference().strip(),
        "## Spans",
        spans.reference().strip(),
        "## Log lines",
        lines.reference().strip(),
    )
