"""The numbers of this process, and the Prometheus page that shows them with those of the store."""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Final, Protocol, TypeAlias

from msgspec import Struct, field

from procedo.telemetry.instruments import INSTRUMENTS, MOST_SERIES, OTHER, Instrument, Kind

__all__ = ["CONTENT_TYPE", "Labels", "Meters", "Samples", "Sink"]

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

Labels: TypeAlias = tuple[str, ...]
Samples: TypeAlias = Mapping[Instrument, Mapping[Labels, float]]
"""What the store says at one moment."""


class Sink(Protocol):
    """Who else counts: the OpenTelemetry SDK, where it is switched on."""

    def add(self, instrument: Instrument, amount: float, labels: Labels) -> None:
        """Count."""

    def record(self, instrument: Instrument, value: float, labels: Labels) -> None:
        """Take one value of a histogram."""


class _Distribution(Struct):
    """The values of a histogram: how many fell into each bucket, and their sum."""

    counts: list[int]
    total: float = 0.0


class Meters(Struct):
    """Counters and histograms by label set. `samples` are the gauges as they were read last."""

    sink: Sink | None = None
    samples: Samples = field(default_factory=dict)
    _counters: dict[Instrument, dict[Labels, float]] = field(default_factory=dict)
    _distributions: dict[Instrument, dict[Labels, _Distribution]] = field(default_factory=dict)

    def add(self, instrument: Instrument, amount: float, *labels: str) -> None:
        """Count."""
        series = self._counters.setdefault(instrument, {})
        kept = _bounded(series, labels)
        series[kept] = series.get(kept, 0.0) + amount
        if self.sink is not None:
            self.sink.add(instrument, amount, kept)

    def record(self, instrument: Instrument, value: float, *labels: str) -> None:
        """Take one value of a histogram."""
        series = self._distributions.setdefault(instrument, {})
        kept = _bounded(series, labels)
        known = series.get(kept)
        if known is None:
            known = series[kept] = _Distribution([0] * (len(instrument.buckets) + 1))
        known.counts[bisect_left(instrument.buckets, value)] += 1
        known.total += value
        if self.sink is not None:
            self.sink.record(instrument, value, kept)

    def value(self, instrument: Instrument, *labels: str) -> float:
        """A counter as it stands."""
        return self._counters.get(instrument, {}).get(labels, 0.0)

    def page(self) -> str:
        """Everything in the text format of Prometheus."""
        lines: list[str] = []
        for one in INSTRUMENTS:
            lines += [f"# HELP {one.prometheus} {one.meaning}", f"# TYPE {one.prometheus} {one.kind}"]
            if one.kind is Kind.GAUGE:
                lines += [_line(one.prometheus, one.labels, key, n) for key, n in self.samples.get(one, {}).items()]
            elif one.kind is Kind.COUNTER:
                lines += [_line(one.prometheus, one.labels, key, n) for key, n in self._counters.get(one, {}).items()]
            else:
                for key, known in self._distributions.get(one, {}).items():
                    lines += _histogram(one, key, known)
        return "\n".join([*lines, ""])


def _bounded(series: Mapping[Labels, object], labels: Labels) -> Labels:
    """The label set, or the one for everything that is too much."""
    if labels in series or len(series) < MOST_SERIES:
        return labels
    return tuple(OTHER for _ in labels)


def _histogram(one: Instrument, key: Labels, known: _Distribution) -> list[str]:
    lines, so_far = [], 0
    for bound, count in zip((*one.buckets, float("inf")), known.counts, strict=True):
        so_far += count
        shown = "+Inf" if bound == float("inf") else f"{bound:g}"
        lines.append(_line(f"{one.prometheus}_bucket", (*one.labels, "le"), (*key, shown), so_far))
    lines.append(_line(f"{one.prometheus}_sum", one.labels, key, known.total))
    lines.append(_line(f"{one.prometheus}_count", one.labels, key, so_far))
    return lines


def _line(name: str, labels: Sequence[str], values: Sequence[str], number: float) -> str:
    pairs = ",".join(
        f'{label.replace(".", "_")}="{_escaped(value)}"' for label, value in zip(labels, values, strict=True)
    )
    shown = str(int(number)) if float(number).is_integer() else repr(float(number))
    return f"{name}{{{pairs}}} {shown}" if pairs else f"{name} {shown}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
