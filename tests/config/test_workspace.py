from pathlib import Path

import pytest

from procedo.config import find_workspace
from procedo.config.workspace import user_data_folder
from procedo.errors import BadArgument


@pytest.fixture
def places(tmp_path: Path) -> Path:
    """A folder with a workspace of each kind in it, and a home."""
    root = tmp_path.resolve()
    for folder in ("argued", "named", "filed/deep/er", "shelved/sops/one", "elsewhere", "home"):
        (root / folder).mkdir(parents=True)
    (root / "filed" / "procedo.toml").touch()
    return root


def test_the_argument_comes_first(places: Path) -> None:
    environ = {"PROCEDO_WORKSPACE": str(places / "named"), "HOME": str(places / "home")}

    assert find_workspace(places / "argued", environ, places / "filed") == places / "argued"
    assert find_workspace(Path("argued"), environ, places) == places / "argued"


def test_the_variable_comes_before_the_folders(places: Path) -> None:
    environ = {"PROCEDO_WORKSPACE": str(places / "named"), "HOME": str(places / "home")}

    assert find_workspace(None, environ, places / "filed") == places / "named"


@pytest.mark.parametrize("value", ["", "  "])
def test_an_empty_variable_is_none(places: Path, value: str) -> None:
    assert find_workspace(None, {"PROCEDO_WORKSPACE": value}, places / "filed") == places / "filed"


@pytest.mark.parametrize(
    ("start", "found"),
    [("filed", "filed"), ("filed/deep/er", "filed"), ("shelved", "shelved"), ("shelved/sops/one", "shelved")],
)
def test_the_nearest_folder_upwards_with_settings_or_procedures_is_the_workspace(
    places: Path, start: str, found: str
) -> None:
    assert find_workspace(None, {}, places / start) == places / found


def test_a_file_named_sops_makes_no_workspace(places: Path) -> None:
    (places / "elsewhere" / "sops").touch()

    assert find_workspace(None, {"HOME": str(places / "home")}, places / "elsewhere") != places / "elsewhere"


def test_otherwise_the_users_data_folder_is_the_workspace_even_before_it_exists(places: Path) -> None:
    environ = {
        "HOME": str(places / "home"),
        "XDG_DATA_HOME": str(places / "data"),
        "LOCALAPPDATA": str(places / "data"),
    }

    found = find_workspace(None, environ, places / "elsewhere")

    assert found.name == "procedo"
    assert found.is_relative_to(places)
    assert not found.exists()


@pytest.mark.parametrize(
    ("platform", "environ", "expected"),
    [
        ("linux", {}, "/home/ida/.local/share/procedo"),
        ("linux", {"XDG_DATA_HOME": "/data"}, "/data/procedo"),
        ("linux", {"XDG_DATA_HOME": "relative"}, "/home/ida/.local/share/procedo"),
        ("darwin", {"XDG_DATA_HOME": "/data"}, "/home/ida/Library/Application Support/procedo"),
        ("win32", {}, "/home/ida/AppData/Local/procedo"),
        ("win32", {"LOCALAPPDATA": "/local"}, "/local/procedo"),
    ],
)
def test_each_platform_has_its_data_folder(platform: str, environ: dict[str, str], expected: str) -> None:
    assert user_data_folder({"HOME": "/home/ida", **environ}, platform) == Path(expected)


def test_a_named_folder_that_does_not_exist_is_refused_and_not_made(places: Path) -> None:
    with pytest.raises(BadArgument, match=r"--workspace names .*/absent, which is no folder\. Create it first\."):
        find_workspace(Path("absent"), {}, places)
    with pytest.raises(BadArgument, match="PROCEDO_WORKSPACE names"):
        find_workspace(None, {"PROCEDO_WORKSPACE": str(places / "filed" / "procedo.toml")}, places)
    with pytest.raises(BadArgument, match="has no home"):
        find_workspace(Path("~nobody-of-that-name/x"), {}, places)

    assert not (places / "absent").exists()
