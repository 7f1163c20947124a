"""A workspace's `procedo.toml` becomes frozen settings, or one error that lists every problem."""

from pathlib import Path
from types import MappingProxyType
from typing import Final

from procedo.config import policies
from procedo.config.agents import agents
from procedo.config.capability_settings import CapabilitySettings, HttpSettings, ShellSettings
from procedo.config.document import FILE_NAME, Document, read
from procedo.config.notices import notices
from procedo.config.serving import serving
from procedo.config.settings import Settings
from procedo.config.telemetry import logging_settings, telemetry_settings
from procedo.core.admission import Limits
from procedo.core.model import Mode
from procedo.errors import InvalidConfig

__all__ = ["DATA_FOLDER", "load"]

DATA_FOLDER: Final = ".procedo"
_MAX_BYTES: Final = 1_048_576
_SHELL: Final = "capabilities.shell"
_HTTP: Final = "capabilities.http"


def load(workspace: Path) -> Settings:
    """Read the settings of a workspace; without a `procedo.toml` every default holds.

    Raises `InvalidConfig` with every problem, each with its file, line and hint.
    """
    root = workspace.expanduser().resolve()
    document = _document(root / FILE_NAME)
    settings = _settings(root, document)
    if document.problems:
        lines = [line for _, line in sorted(document.problems, key=lambda problem: problem[0])]
        many = f"{len(lines)} problems, the first is" if len(lines) > 1 else "1 problem:"
        raise InvalidConfig("invalid_config", f"{root / FILE_NAME} has {many} {lines[0]}", problems=lines)
    return settings


def _document(path: Path) -> Document:
    document = Document()
    try:
        with path.open("rb") as file:
            data = file.read(_MAX_BYTES + 1)
    except FileNotFoundError:
        return document
    except OSError as error:
        hint = "make it a file that the server may read, or remove it"
        document.note(1, "unreadable", f"the file cannot be read: {error.strerror or error}", hint)
        return document
    if len(data) > _MAX_BYTES:
        document.note(1, "too-large", f"the file is larger than {_MAX_BYTES} bytes", "settings need a few lines only")
        return document
    try:
        return read(data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        document.note(line, "encoding", "the file is not UTF-8", "save it as UTF-8")
        return document


def _settings(root: Path, document: Document) -> Settings:
    known = policies.policies(document)
    return Settings(
        root=root,
        sops_dir=(root / document.value("sop", "sops_dir")).resolve(),
        data_dir=root / DATA_FOLDER,
        host_agent=document.value("procedo", "host_agent"),
        default_mode=Mode(document.value("sop", "default_execution_mode")),
        limits=Limits(
            total=document.value("sop", "max_concurrent_total"), visits=document.value("sop", "max_step_visits")
        ),
        max_value_bytes=document.value("sop", "max_value_bytes"),
        policies=MappingProxyType(known),
        default_policy=policies.default_policy(document, known),
        break_glass=frozenset(document.value("sop.approval", "break_glass")),
        capabilities=CapabilitySettings(shell=_shell(root, document), http=_http(document)),
        lease_s=document.value("worker", "lease"),
        agents=agents(root, document, known, document.value("procedo", "host_agent")),
        serving=serving(root, document),
        notices=notices(document),
        telemetry=telemetry_settings(document),
        logging=logging_settings(document),
    )


def _http(document: Document) -> HttpSettings:
    return HttpSettings(
        allowed_hosts=document.value(_HTTP, "allowed_hosts"),
        timeout_s=document.value(_HTTP, "timeout"),
        max_bytes=document.value(_HTTP, "max_bytes"),
    )


def _shell(root: Path, document: Document) -> ShellSettings:
    shell = ShellSettings(
        root=root,
        cwd=(root / document.value(_SHELL, "cwd")).resolve(),
        enabled=document.value(_SHELL, "enabled"),
        allowed_commands=frozenset(document.value(_SHELL, "allowed_commands")),
        env=frozenset(document.value(_SHELL, "env")),
        timeout_s=document.value(_SHELL, "timeout"),
        max_output_bytes=document.value(_SHELL, "max_output_bytes"),
    )
    if not shell.cwd.is_relative_to(root):
        hint = "commands start in a folder of the workspace"
        document.object_to((*_SHELL.split("."), "cwd"), "outside", f"cwd {shell.cwd} is outside of {root}", hint)
    elif document.stated(_SHELL, "cwd") and not shell.cwd.is_dir():
        document.object_to((*_SHELL.split("."), "cwd"), "no-folder", f"cwd {shell.cwd} is no folder", "create it first")
    if shell.enabled and not shell.allowed_commands and not document.broke(_SHELL, "allowed_commands"):
        hint = 'name the programs that may run, such as allowed_commands = ["git"]'
        document.object_to(
            (*_SHELL.split("."), "enabled"), "no-commands", "shell.exec is enabled, but no command is allowed", hint
        )
    return shell
