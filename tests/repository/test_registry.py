"""server.json is what the MCP registry shows; its versions can never be corrected afterwards."""

import json
import tomllib
from typing import Any

import pytest
from jsonschema import Draft7Validator, FormatChecker
from repository import ROOT, readme

SCHEMA = ROOT / "tests" / "repository" / "data" / "mcp-server.schema.2025-12-11.json"

pytestmark = pytest.mark.requirement("registry")


def entry() -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((ROOT / "server.json").read_text(encoding="utf-8"))
    return loaded


def project() -> dict[str, Any]:
    loaded: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return loaded


def problems(document: object) -> list[str]:
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    Draft7Validator.check_schema(schema)
    found = Draft7Validator(schema, format_checker=FormatChecker()).iter_errors(document)
    return [f"{error.json_path}: {error.message}" for error in found]


def test_the_entry_keeps_the_published_schema() -> None:
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    assert entry()["$schema"] == schema["$id"]
    assert problems(entry()) == []


@pytest.mark.parametrize(
    "damage",
    [{"description": "x" * 101}, {"description": ""}, {"name": "procedo"}, {"version": None}, {"packages": [{}]}],
    ids=["long", "empty", "plain name", "no version", "empty package"],
)
def test_a_damaged_entry_is_noticed(damage: dict[str, Any]) -> None:
    assert problems({**entry(), **damage}) != []


def test_the_versions_agree() -> None:
    version = project()["version"]
    assert entry()["version"] == version
    assert [package["version"] for package in entry()["packages"]] == [version]
    assert f"## {version}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_the_package_is_this_one_and_starts_the_server() -> None:
    (package,) = entry()["packages"]
    assert (package["registryType"], package["identifier"]) == ("pypi", project()["name"])
    assert package["transport"] == {"type": "stdio"}
    assert [argument["value"] for argument in package["packageArguments"]] == ["serve"]
    assert project()["scripts"] == {"procedo": "procedo.surfaces.cli.main:main"}


def test_the_readme_proves_that_the_package_belongs_to_the_entry() -> None:
    assert f"<!-- mcp-name: {entry()['name']} -->" in readme()
