"""Every key of `procedo.toml`, as data. The parser and the documentation read this table.

A table name with `<…>` in it stands for one table per name that the user chooses.
"""

from typing import Final

from procedo.config import forms
from procedo.config.agent_keys import AGENT_KEYS
from procedo.config.key import Key
from procedo.config.notice_keys import NOTICE_KEYS
from procedo.config.serving_keys import SERVING_KEYS
from procedo.config.telemetry_keys import TELEMETRY_KEYS
from procedo.core.approval import OnExpiry
from procedo.core.model import Json, Mode

__all__ = ["KEYS", "Key", "default", "reference", "shown_default"]

_DAY = 86400.0


_GROUP: Final = "sop.approval.groups.<group>"
_POLICY: Final = "sop.approval.policies.<policy>"
_HTTP: Final = "capabilities.http"
_SHELL: Final = "capabilities.shell"

KEYS: Final[tuple[Key, ...]] = (
    Key("procedo", "host_agent", forms.name(), "host", "The agent name under which the calling host acts."),
    Key("sop", "sops_dir", forms.folder(), "sops", "Where procedures lie: in the workspace, absolute, or from `~`."),
    Key(
        "sop",
        "default_execution_mode",
        forms.word([str(mode) for mode in Mode]),
        str(Mode.SUPERVISED),
        "The mode of procedures that name none.",
    ),
    Key("sop", "max_concurrent_total", forms.count(1, 10_000), 4, "Runs that may execute at once, in all."),
    Key("sop", "max_value_bytes", forms.count(1, 16_777_216), 65_536, "Size of each input and output, in bytes."),
    Key("sop", "max_step_visits", forms.count(1, 1_000_000), 256, "How often one run may reach the same step."),
    Key("sop.approval", "default_policy", forms.name(), "human", "The policy of gates that name none."),
    Key(
        "sop.approval",
        "break_glass",
        forms.listed(forms.member()),
        (),
        "Who may decide alone in an emergency, with a reason: procedo approve --break-glass.",
    ),
    Key(_GROUP, "members", forms.listed(forms.member()), (), "Who belongs to the group.", required=True),
    Key(_GROUP, "by_token", forms.flag(), False, "Whether a token or claim that names the group makes a member, too."),
    Key(_GROUP, "request_route", forms.name(), None, "The notice for gates that this group decides."),
    Key(_POLICY, "required_group", forms.name(), None, "The group that decides; without it any person may."),
    Key(_POLICY, "quorum", forms.count(0, 1_000), 1, "How many distinct members have to agree; 0 means 1."),
    Key(
        _POLICY,
        "distinct_from",
        forms.listed(forms.word(["executor", "starter", "delegation"])),
        ("executor",),
        "Who never decides: who executed the run's steps, who started it, or anybody in its delegation chain.",
    ),
    Key(_POLICY, "timeout", forms.duration(0, 366 * _DAY), 0.0, "How long a gate waits; 0 waits for ever."),
    Key(
        _POLICY,
        "on_timeout",
        forms.expiry(),
        OnExpiry.ESCALATE,
        "What follows when nobody answers in time. Nothing approves.",
    ),
    Key(_POLICY, "max_reminders", forms.count(0, 1_000), 3, "How often the question is put again before it is denied."),
    Key(_POLICY, "agents", forms.listed(forms.member()), (), "Agents that may decide although they are no persons."),
    Key(_POLICY, "out_of_band", forms.flag(), False, "Decide only at another door than the calling host."),
    Key(_POLICY, "auto_approve", forms.flag(), False, "Approves by itself the gates of steps that name the policy."),
    Key(_POLICY, "request_route", forms.name(), None, "The notice for its gates; without it that of its group."),
    Key(_POLICY, "escalation_route", forms.name(), None, "The notice for its gates when nobody answered in time."),
    *NOTICE_KEYS,
    Key(_HTTP, "allowed_hosts", forms.listed(forms.host()), (), "Hosts that `http.request` may call; none: it is off."),
    Key(_HTTP, "timeout", forms.duration(0.05, 600), 30.0, "Time for one call, redirects included."),
    Key(_HTTP, "max_bytes", forms.count(1, 16_777_216), 32_768, "Size of an answer's body, in bytes."),
    Key(_SHELL, "enabled", forms.flag(), False, "Whether `shell.exec` may run programs at all."),
    Key(_SHELL, "allowed_commands", forms.listed(forms.command()), (), "Programs that may run."),
    Key(_SHELL, "env", forms.listed(forms.variable()), (), "Environment variables that are passed on; no others are."),
    Key(_SHELL, "timeout", forms.duration(0.05, 86400), 60.0, "Time for one command."),
    Key(_SHELL, "max_output_bytes", forms.count(1, 16_777_216), 16_384, "What is kept of each output, in bytes."),
    Key(_SHELL, "cwd", forms.folder(), ".", "Where commands start: a folder of the workspace."),
    *SERVING_KEYS,
    *TELEMETRY_KEYS,
    Key("worker", "lease", forms.duration(1, 3600), 10.0, "How long a worker holds work without renewing."),
    *AGENT_KEYS,
)  # fmt: skip


def default(table: str, name: str) -> Json:
    """The default of a key, in its read form."""
    return next(key.default for key in KEYS if (key.table, key.name) == (table, name))


def shown_default(key: Key) -> str:
    """What holds without the key, in words."""
    if key.required:
        return "required"
    if isinstance(key.default, bool):
        return str(key.default).lower()
    if isinstance(key.default, tuple):
        return f"[{', '.join(key.default)}]"
    return "none" if key.default is None else f"{key.default:g}" if isinstance(key.default, float) else str(key.default)


def reference() -> str:
    """The table of keys in Markdown, for the documentation."""
    rows = [
        f"| `[{key.table}]` | `{key.name}` | {key.form.words} | {shown_default(key)} | {key.meaning} |" for key in KEYS
    ]
    return "\n".join(["| table | key | value | default | meaning |", "|---|---|---|---|---|", *rows, ""])
