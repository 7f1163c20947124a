"""Long lists and long records come in pages, and nothing is missed or told twice."""

import json
from pathlib import Path
from typing import Any

import pytest
from mcp import MCPError
from mcp.types import TextResourceContents
from mcp_host import ERAS, PLAIN, Host, desk

from procedo.errors import BadArgument
from procedo.surfaces.mcp.listpages import MOST, paged

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("pages")]
MANY = {
    f"plain-{n:03}": {**PLAIN, "SOP.toml": PLAIN["SOP.toml"].replace('"plain"', f'"plain-{n:03}"')} for n in range(230)
}


def keyed(*names: str) -> list[tuple[str, str]]:
    return [(name, name.upper()) for name in names]


async def test_a_short_list_is_one_page() -> None:
    assert paged(keyed("b", "a"), None) == (["A", "B"], None)
    assert paged([], None) == ([], None)


async def test_what_comes_or_goes_meanwhile_shifts_nothing() -> None:
    names = [f"n{number:04}" for number in range(MOST + 2)]
    page, cursor = paged(keyed(*names), None)
    assert (len(page), cursor is not None) == (MOST, True)
    changed = keyed("a-new-one", *names[3:])
    changed.remove((names[MOST - 1], names[MOST - 1].upper()))
    assert paged(changed, cursor) == ([name.upper() for name in names[MOST:]], None)


@pytest.mark.parametrize("cursor", ["", "x", "%%%%", "AAAAA", "é"])
async def test_a_cursor_of_nobody_is_refused(cursor: str) -> None:
    if cursor == "":
        assert paged(keyed("a"), cursor) == (["A"], None), "an empty one begins at the beginning"
        return
    with pytest.raises(BadArgument):
        paged(keyed("a"), cursor)


@pytest.mark.parametrize("era", ERAS)
async def test_hundreds_of_procedures_are_listed_page_by_page(tmp_path: Path, era: str) -> None:
    async with desk(tmp_path, era, MANY) as at, at.host() as host:
        names: list[str] = []
        uris: list[str] = []
        sizes: list[int] = []
        cursor = None
        while cursor is not None or not names:
            prompts = await host.client.list_prompts(cursor=cursor)
            names += [one.name for one in prompts.prompts]
            sizes.append(len(prompts.prompts))
            cursor = prompts.next_cursor
        assert (names, sizes) == (sorted(MANY), [100, 100, 30])
        while cursor is not None or not uris:
            resources = await host.client.list_resources(cursor=cursor)
            uris += [str(one.uri) for one in resources.resources]
            cursor = resources.next_cursor
        assert uris[:2] == ["sop://catalog", "sop://format"]
        assert [uri for uri in uris if uri.startswith("sop://sops/")] == [f"sop://sops/{name}" for name in sorted(MANY)]
        assert len(uris) == len(set(uris)) > 232
        with pytest.raises(MCPError) as refusal:
            await host.client.list_prompts(cursor="nonsense!")
        assert (refusal.value.error.code, refusal.value.error.data) == (-32602, {"code": "bad_cursor"})


async def timeline(host: Host, uri: str) -> Any:
    (content,) = (await host.client.read_resource(uri)).contents
    assert isinstance(content, TextResourceContents)
    return json.loads(content.text)


@pytest.mark.parametrize("size", [1, 400, 2_000, 200_000])
async def test_a_record_is_read_page_by_page(tmp_path: Path, size: int) -> None:
    async with desk(tmp_path) as at, at.host() as host:
        run_id = (await host.call("sop_start", name="plain"))["run_id"]
        for number in (1, 2, 3):
            arguments = {"run_id": run_id, "execution_id": f"{number}.1", "status": "completed", "output": number}
            await host.call("sop_advance", **arguments)
        records: list[Any] = []
        uri: str | None = f"sop://runs/{run_id}/timeline?max_chars={size}"
        pages = 0
        while uri is not None:
            page = await timeline(host, uri)
            assert page["records"]
            records += page["records"]
            uri = page.get("next")
            pages += 1
        every = await at.app.runs.timeline(run_id)
        assert [one["seq"] for one in records] == [record.seq for record in every]
        assert pages == (1 if size == 200_000 else len(every) if size == 1 else pages)
