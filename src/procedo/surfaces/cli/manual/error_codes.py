"""What each error code means, for the reference. A test compares this table with the errors that the code raises."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from msgspec import Struct

from procedo.errors import (
    BadArgument,
    Conflict,
    InvalidConfig,
    InvalidSop,
    NotFound,
    ProcedoError,
    Refused,
    StoreError,
)

__all__ = ["ERROR_CODES", "KINDS", "ErrorCode"]

KINDS: Final[Mapping[type[ProcedoError], str]] = MappingProxyType(
    {
        ProcedoError: "something else went wrong",
        Refused: "may not happen in the present state",
        NotFound: "nothing has that name or id",
        Conflict: "somebody else was first, or the same id came with other content",
        BadArgument: "an argument is missing, unknown or of the wrong form",
        InvalidSop: "a procedure or a script cannot be used; the problems are listed",
        InvalidConfig: "`procedo.toml` cannot be used; the problems are listed",
        StoreError: "the record cannot be kept or read; nothing was changed",
    }
)
"""The kinds of errors, and what each says."""


class ErrorCode(Struct, frozen=True):
    """A code: what it is about, the kinds of errors that carry it, and what it means."""

    about: str
    kinds: tuple[type[ProcedoError], ...]
    meaning: str


def _codes(
    about: str, *rows: tuple[str, type[ProcedoError] | tuple[type[ProcedoError], ...], str]
) -> dict[str, ErrorCode]:
    return {
        code: ErrorCode(about, kinds if isinstance(kinds, tuple) else (kinds,), meaning)
        for code, kinds, meaning in rows
    }


_STARTING: Final = _codes(
    "Starting a run",
    ("bad_inputs", BadArgument, "The inputs do not fit the procedure's schema; each violation is told."),
    ("deferred", Refused, "A limit holds the start back; it is named. Try again later."),
    ("dropped", Refused, "A limit or a cooldown refuses the start; it is named. Nothing queues."),
    ("exists", Conflict, "What was to be made is there already; nothing is overwritten."),
    ("key_in_use", Refused, "A live run has the same key."),
    ("key_reused", Conflict, "The idempotency key came before, with other arguments."),
    ("key_taken", Conflict, "The idempotency key made another run meanwhile."),
    ("missing_name", BadArgument, "No procedure is named."),
    ("no_key", BadArgument, "The procedure's `key` has no value for these inputs."),
    ("others_run", Refused, "The start would be answered with a run of another caller."),
    ("too_deep", Refused, "Sub-runs or delegations are nested too deep."),
    ("window_used_up", Refused, "As many runs began in the window as the procedure allows."),
)
_RUNS: Final = _codes(
    "Runs and reports",
    ("already_reported", Conflict, "The execution is closed with another report; the first one stands."),
    ("bad_status", BadArgument, "A report is completed, failed or skipped."),
    ("completed", Refused, "A completed step is not opened again."),
    ("ended", Refused, "The run has ended and never changes."),
    ("halted", Refused, "A person has to decide about the execution first."),
    ("invalid_value", Refused, "`json.validate`: the value does not fit its schema."),
    ("never_reached", Refused, "The step was never executed in this run."),
    ("no_input", Refused, "A successor run cannot begin at that step: its input was a failed output."),
    ("no_output", NotFound, "The run has no output yet."),
    ("no_session", NotFound, "That execution has no session of an agent."),
    ("not_failed_step", Refused, "The run did not fail at that step."),
    ("not_open", (Refused, Conflict), "The execution is not open; the message names what is, and the right call."),
    ("not_ended", Refused, "The run has not ended, so it has no output yet."),
    ("not_now", Refused, "The run does not take this as it stands."),
    ("not_paused", Refused, "There is no pause to end."),
    ("not_yours", Refused, "The server or another agent performs this execution."),
    ("paused", Refused, "An operator holds the run."),
    ("run_ended", Conflict, "The run ended while the call was under way."),
    ("stale", Conflict, "The work was taken over by another process; the late result is not taken."),
    ("stale_revision", Conflict, "Somebody else changed the run first. Read it again."),
    ("under_way", Refused, "The step is being worked on."),
    ("unknown_execution", NotFound, "The run has no such execution."),
    ("unknown_run", NotFound, "No run has that id, or it belongs to another caller."),
    ("unknown_session", NotFound, "No agent's session carried that execution out."),
    ("unknown_step", NotFound, "The procedure has no such step, or the run has not executed it."),
)
_GATES: Final = _codes(
    "Gates and decisions",
    ("already_decided", Conflict, "The gate has another answer; the message says whose."),
    ("ambiguous_gate", Refused, "Several gates have that short code: use the whole id."),
    ("bad_answer", BadArgument, "An answer at the host does not fit the form that was shown."),
    ("expired", Conflict, "Nobody answered in time; what followed is on the record."),
    ("glass_not_broken", Refused, "This person may not decide alone, or the gate's version is outdated."),
    ("glass_not_needed", Refused, "The person may decide as usual, so nothing is overridden."),
    ("missing_decision", BadArgument, "An agent that may decide has to say what."),
    ("missing_guidance", BadArgument, "A revision needs guidance."),
    ("missing_reason", BadArgument, "Ending or holding a run wants a reason."),
    ("missing_value", BadArgument, "An amendment needs its value."),
    ("no_terminal", Refused, "A decision at the command line needs a person at a terminal, or a person's token."),
    ("no_vote", Refused, "There is no answer of yours to take back."),
    ("not_authorised", Refused, "The policy does not name the one who answered; the gate stays open."),
    ("not_confirmed", Refused, "The question at the terminal was not answered with `y`."),
    ("not_delivered", Refused, "A notice could not be delivered; it is tried again."),
    ("not_editable", (Refused, BadArgument), "The step declares no field that an approver may amend."),
    ("other_run", Refused, "The gate belongs to another run than the one named."),
    ("out_of_band", Refused, "The policy wants this decided away from the calling host."),
    ("policy_missing", Refused, "The gate's policy is not configured; the gate stays open."),
    ("superseded", (Refused, Conflict), "A newer draft stands, or is being made: look again before you answer."),
    ("unexpected_value", BadArgument, "A value goes with an amendment alone."),
    ("unknown_gate", NotFound, "There is no such gate."),
    ("withdrawn", Conflict, "The question is void: the run ended or moved on."),
    ("wrong_verdict", BadArgument, "The gate does not take that answer; the message lists those it takes."),
)
_ACCESS: Final = _codes(
    "Tokens and doors",
    ("bad_token", (Refused, BadArgument), "No live token has that secret; or a token cannot be made like this."),
    ("bad_form", BadArgument, "A form of the pages was not sent by the page."),
    ("bad_reach", BadArgument, "A token's limit names no procedure or agent."),
    ("beyond_reach", Refused, "The procedure or agent is beyond the limits of the token."),
    ("cannot_listen", BadArgument, "Nothing can listen at that address and port."),
    ("name_taken", (BadArgument, Conflict, Refused), "A token, a procedure or a server has that name already."),
    ("no_public_url", Refused, "The server is reached under a name that it does not know: set `[http] public_url`."),
    ("no_page", NotFound, "There is no such page."),
    ("open_metrics", Refused, "`/metrics` may be open to callers of this machine alone."),
    ("telemetry_exporter", Refused, "The environment asks for an exporter that is not offered."),
    ("telemetry_missing", Refused, "Telemetry is switched on, and its extra is not installed."),
    ("telemetry_protocol", Refused, "The environment asks for a protocol of OTLP that is not offered."),
    ("not_permitted", Refused, "The role for it is missing, or it is for people alone."),
    ("unknown_token", NotFound, "There is no such token."),
    ("unprotected", Refused, "The address can be reached from other machines, and nobody has to identify."),
)
_ARGUMENTS: Final = _codes(
    "Arguments and names",
    ("bad_argument", BadArgument, "An argument is missing, unknown or of the wrong form."),
    ("demo_failed", ProcedoError, "The demonstration did not go as it tells."),
    ("bad_cursor", BadArgument, "A list has no page with that cursor."),
    ("bad_page", BadArgument, "A page of a resource is out of range."),
    ("bad_step", BadArgument, "A resource address names no step."),
    ("bad_value", BadArgument, "An amended value is no JSON."),
    ("not_found", NotFound, "Neither a procedure nor a run has that name."),
    ("not_json", (BadArgument, StoreError), "A value is no JSON (numbers are finite, keys are text)."),
    ("not_writable", BadArgument, "A file or folder cannot be written."),
    ("too_large", BadArgument, "A value, form or file is over its limit; nothing was cut."),
    ("too_slow", BadArgument, "A form of the console did not come to its end in time."),
    ("unknown_resource", NotFound, "Nothing has that address."),
    ("other_procedure", BadArgument, "The run is one of another procedure."),
    ("unknown_verb", BadArgument, "There is no such verb."),
    ("wrong_page", BadArgument, "A list has no such page."),
    ("wrong_place", BadArgument, "A value has no such place."),
    ("wrong_status", BadArgument, "There is no such status to filter by."),
)
_FILES: Final = _codes(
    "Procedures and files",
    ("bad_name", BadArgument, "That cannot be the name of a procedure."),
    ("bad_test", InvalidSop, "A rehearsal script has mistakes; all are listed."),
    ("cannot_write", Refused, "A definition cannot be written back as the same."),
    ("cannot_edit", Refused, "The settings file of a host cannot be edited safely; it is left alone."),
    ("cannot_parse", InvalidConfig, "The settings file of a host cannot be read; it is left alone."),
    ("changed_file", Refused, "A state file was changed since it was written."),
    ("changed_meanwhile", Conflict, "The settings file of a host was changed by somebody else; it is left alone."),
    ("invalid_config", InvalidConfig, "`procedo.toml` has mistakes; all are listed."),
    ("invalid_sop", InvalidSop, "The procedure has mistakes; they are listed."),
    ("moved_on", Refused, "The run has moved on past its state file."),
    ("no_folder", (NotFound, Refused), "That is no folder."),
    ("no_script", NotFound, "The procedure has no rehearsal script."),
    ("no_state_file", BadArgument, "That is no state file of a run."),
    ("no_workspace", BadArgument, "The workspace is no folder."),
    ("not_utf8", InvalidConfig, "The settings file of a host is not UTF-8; it is left alone."),
    ("unknown_sop", NotFound, "There is no such procedure; near names are told."),
)
_WORK: Final = _codes(
    "Agents and capabilities",
    ("bad_header", BadArgument, "`http.request`: a header cannot be sent."),
    ("bad_redirect", Refused, "`http.request`: a redirect that is not followed."),
    ("bad_url", Refused, "`http.request`: no usable address."),
    ("command_failed", Refused, "`shell.exec`: the program ended with an error."),
    ("command_not_allowed", Refused, "`shell.exec`: the program is not in `allowed_commands`."),
    ("command_not_found", Refused, "`shell.exec`: there is no such program."),
    ("command_stopped", Refused, "`shell.exec`: the program ran out of time, or gave too much."),
    ("host_not_allowed", Refused, "`http.request`: the host is not in `allowed_hosts`."),
    ("http_body", Refused, "`http.request`: the answer cannot be used."),
    ("http_connection", Refused, "`http.request`: no connection."),
    ("http_status", Refused, "`http.request`: the status tells a failure."),
    ("http_timeout", Refused, "`http.request`: no complete answer in time."),
    ("invalid_arguments", BadArgument, "The arguments do not fit the capability's schema."),
    ("invalid_result", Refused, "A capability's result does not fit its own schema."),
    ("malformed_schema", Refused, "`json.validate`: the schema is none."),
    ("not_assembled", Refused, "The step's agent cannot be assembled; every reason is told."),
    ("not_started", Refused, "`shell.exec`: the program cannot be started."),
    ("outside", Refused, "`shell.exec`: the folder lies outside of the workspace."),
    ("put_down", Refused, "The process ends; another one goes on with the session."),
    ("too_many_redirects", Refused, "`http.request`: too many redirects."),
    ("unavailable", Refused, "The capability is not switched on in this workspace."),
    ("unexpected_body", BadArgument, "`http.request`: this method takes no body."),
)
_STORE: Final = _codes(
    "The store",
    ("cannot_open", StoreError, "The store cannot be opened; procedo does not start without it."),
    ("definition_lost", StoreError, "A run's pinned definition is not in the store."),
    ("key_exposed", StoreError, "The key file of pending questions can be read by others."),
    ("key_unusable", StoreError, "The key file of pending questions cannot be used."),
    ("lost", StoreError, "A change would lose a part of the run; it was not made."),
    ("naive_time", StoreError, "A time has no time zone."),
    ("newer_schema", StoreError, "A newer procedo wrote the store: update this one."),
    ("no_answer", StoreError, "A change gave no answer; it was not made."),
    ("no_row", StoreError, "The run was not stored."),
    ("no_text", StoreError, "A name or key is no valid Unicode."),
    ("no_wal", StoreError, "The file system cannot carry the store: use a local disk."),
    ("not_our_file", StoreError, "The file is a database of another program."),
    ("origin_changed", StoreError, "A change would rewrite how the run began; it was not made."),
    ("store_busy", StoreError, "Another process wrote for too long."),
    ("store_closed", StoreError, "The store was closed while the call was under way."),
    ("unreadable_record", StoreError, "A stored record is damaged: run `procedo audit verify`."),
    ("wrong_count", StoreError, "A change would break the count of events; it was not made."),
)

ERROR_CODES: Final[Mapping[str, ErrorCode]] = MappingProxyType(
    {**_STARTING, **_RUNS, **_GATES, **_ACCESS, **_ARGUMENTS, **_FILES, **_WORK, **_STORE}
)
"""By code. SQLite's own errors come as `StoreError` with SQLite's name in small letters (`sqlite_full`)."""
