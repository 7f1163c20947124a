"""Under `PROCEDO_CI=1` a skipped test is a failed one: there nothing may be missing but what is opt-in (`llm`)."""

import os
from collections.abc import Generator

import pytest


def _turned_over(report: pytest.TestReport | pytest.CollectReport, where: str) -> None:
    if os.environ.get("PROCEDO_CI") == "1" and report.skipped and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        report.outcome = "failed"
        report.longrepr = f"{where}: {reason}. Nothing is optional under PROCEDO_CI=1."


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if item.get_closest_marker("llm") is None:
        _turned_over(report, item.nodeid)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    _turned_over(report, collector.nodeid)
    return report
