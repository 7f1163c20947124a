"""Builds the bundle that Claude Desktop installs with a click: `python .ci/bundle.py DIST`.

An MCPB archive of type `uv`: the manifest, the sources and the list of dependencies; the host's own `uv` brings Python
and the dependencies. The same sources give the same bytes. Needs an environment in which procedo is installed, for
the manifest lists the real tools.
"""

import argparse
import json
import struct
import tomllib
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[1]
START: Final = "src/start.py"
_START_TEXT: Final = '''"""Starts the server as a host starts it; PROCEDO_WORKSPACE names the workspace."""

from procedo.surfaces.cli.main import main

if __name__ == "__main__":
    raise SystemExit(main(["serve"]))
'''
_PLAIN: Final = ("LICENSE", "README.md", "pyproject.toml")
_MOMENT: Final = (1980, 1, 1, 0, 0, 0)
_MODE: Final = 0o100644 << 16
_SIZE: Final = 256


def _tools() -> list[dict[str, str]]:
    """Name and first sentence of every tool, as the server tells them."""
    from procedo.surfaces.mcp.server import built_tools

    return [{"name": tool.name, "description": _sentence(tool.description or "")} for tool in built_tools()]


def _sentence(text: str) -> str:
    words = " ".join(text.split())
    return words.partition(". ")[0].rstrip(".") + "."


def manifest() -> dict[str, Any]:
    """The manifest, made of what the project says of itself."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return {
        "manifest_version": "0.4",
        "name": project["name"],
        "display_name": "procedo",
        "version": project["version"],
        "description": project["description"],
        "author": {"name": "The procedo authors"},
        "license": project["license"],
        "keywords": project["keywords"],
        "icon": "icon.png",
        "server": {
            "type": "uv",
            "entry_point": START,
            "mcp_config": {
                "command": "uv",
                "args": ["run", "--directory", "${__dirname}", START],
                "env": {"PROCEDO_WORKSPACE": "${user_config.workspace}"},
            },
        },
        "tools": _tools(),
        "prompts_generated": True,
        "user_config": {
            "workspace": {
                "type": "directory",
                "title": "Workspace",
                "description": "The folder that holds your procedures in sops/; the record of runs is kept in it, too.",
                "required": True,
            }
        },
        "compatibility": {
            "platforms": ["darwin", "win32", "linux"],
            "runtimes": {"python": project["requires-python"]},
        },
    }


def _icon() -> bytes:
    """A gate between two steps, as PNG."""
    back, bar, step = b"\x1f\x3a\x5f", b"\xf2\xb1\x34", b"\xff\xff\xff"

    def colour(x: int, y: int) -> bytes:
        if 116 <= x < 140 and 40 <= y < 216:
            return bar
        in_step = 104 <= y < 152 and (32 <= x < 92 or 164 <= x < 224)
        return step if in_step else back

    rows = b"".join(b"\0" + b"".join(colour(x, y) for x in range(_SIZE)) for y in range(_SIZE))
    parts = ((b"IHDR", struct.pack(">IIBBBBB", _SIZE, _SIZE, 8, 2, 0, 0, 0)), (b"IDAT", zlib.compress(rows, 9)))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(*part) for part in (*parts, (b"IEND", b"")))


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def _sources() -> Iterator[Path]:
    """The files of the package; what compilers and checkers left between them stays out."""
    top = ROOT / "src" / "procedo"
    for path in sorted(top.rglob("*")):
        parts = path.relative_to(top).parts
        if path.is_file() and not any(part == "__pycache__" or part.startswith(".") for part in parts):
            yield path


def contents() -> Mapping[str, bytes]:
    """Every file of the bundle by its name in it."""
    text = json.dumps(manifest(), ensure_ascii=False, indent=2) + "\n"
    files = {"manifest.json": text.encode(), "icon.png": _icon(), START: _START_TEXT.encode()}
    files |= {name: (ROOT / name).read_bytes() for name in _PLAIN}
    return files | {path.relative_to(ROOT).as_posix(): path.read_bytes() for path in _sources()}


def build(folder: Path) -> Path:
    """Write `procedo-VERSION.mcpb` into a folder; returns its path."""
    files = contents()
    version = json.loads(files["manifest.json"])["version"]
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"procedo-{version}.mcpb"
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in sorted(files.items()):
            entry = zipfile.ZipInfo(name, _MOMENT)
            entry.compress_type, entry.create_system, entry.external_attr = zipfile.ZIP_DEFLATED, 3, _MODE
            archive.writestr(entry, data, compresslevel=9)
    return path


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", metavar="DIST", type=Path, help="where the bundle is written")
    print(build(parser.parse_args().folder))  # noqa: T201  # a script that names what it made
