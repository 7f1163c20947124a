"""Every code of a problem in `procedo.toml`: its meaning, an example that has it, and what would be right.

Documentation and tests read this table; a problem itself tells more, with its line.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from msgspec import Struct

__all__ = ["CONFIG_CODES", "ConfigCode"]


class ConfigCode(Struct, frozen=True):
    """What a code means, an example (lines of the file, or words about it), and what would be right."""

    meaning: str
    example: str
    remedy: str


def _codes(**rows: tuple[str, str, str]) -> dict[str, ConfigCode]:
    return {code.replace("_", "-"): ConfigCode(*row) for code, row in sorted(rows.items())}


_POLICY: Final = "[sop.approval.policies.release]"

CONFIG_CODES: Final[Mapping[str, ConfigCode]] = MappingProxyType(
    _codes(
        agents_default=(
            "The default policy lets an agent decide, so a model could pass any gate.",
            f'[sop.approval]\ndefault_policy = "release"\n{_POLICY}\nagents = ["checker"]',
            "Name the policy at the steps that it is for.",
        ),
        ambiguous=(
            "Two keys say different things about one matter.",
            '[risk_profiles.careful]\nsandbox_enabled = false\nsandbox_backend = "bubblewrap"',
            "Keep one of them.",
        ),
        auto_approve_default=(
            "The default policy approves by itself, so no gate would stop anybody.",
            f'[sop.approval]\ndefault_policy = "release"\n{_POLICY}\nauto_approve = true',
            "Name the policy at the steps that it is for.",
        ),
        bad_name=(
            "A table has a name that cannot be used.",
            '[sop.approval.groups."two words"]\nmembers = ["ida"]',
            "Use letters and digits, with `_`, `.` and `-` between them.",
        ),
        bad_pattern=(
            "A pattern of tool names has more than one `*`.",
            '[[runtime_profiles.short.tool_filter_groups]]\nmode = "always"\ntools = ["*read*"]',
            "Write one `*` at most.",
        ),
        bad_value=("A value has another form than its key takes.", "[sop]\nmax_concurrent_total = 0", "See its key."),
        encoding=("The file is not UTF-8.", "A file in Latin-1", "Save it as UTF-8."),
        half_price=(
            "A provider gives one of its two prices.",
            '[providers.models.openai_compatible.local]\nmodel = "m"\nendpoint = "http://127.0.0.1:1/v1"\n'
            "input_usd_per_million = 1",
            "Write both; 0 is free.",
        ),
        host_agent=(
            "An agent has the name of the calling host.",
            '[agents.host]\nmodel_provider = "scripted.a"\nrisk_profile = "careful"',
            "Rename it, or change `host_agent`.",
        ),
        idle_key=(
            "A key has no effect beside the others.",
            f'{_POLICY}\non_timeout = "deny"',
            "Add what it belongs to (here `timeout`), or leave it out.",
        ),
        insecure_url=(
            "An address is not protected on its way.",
            '[notices.ops]\ntype = "webhook"\nurl = "http://ops.example/hook"',
            "Use https; http is for this machine alone.",
        ),
        jwks=(
            "OAuth has no source of the issuer's keys, or two.",
            '[http.oauth]\nissuer = "https://id.example/"\nresource = "https://p.example/mcp"',
            "Give one of `jwks_url` and `jwks_file`.",
        ),
        keywords=(
            "A filter group has keywords and needs none, or the other way round.",
            '[[runtime_profiles.short.tool_filter_groups]]\nmode = "dynamic"\ntools = ["tickets__*"]',
            "Give a dynamic group keywords, and an always group none.",
        ),
        missing_key=("A table lacks a key.", '[notices.ops]\ntype = "webhook"', "Add the key that the message names."),
        name_collision=(
            "Two names differ in upper and lower case alone.",
            '[sop.approval.groups.ops]\nmembers = ["ida"]\n[sop.approval.groups.Ops]\nmembers = ["noor"]',
            "Rename one of them.",
        ),
        no_commands=(
            "`shell.exec` is on, and no program is allowed.",
            "[capabilities.shell]\nenabled = true",
            "List the programs in `allowed_commands`.",
        ),
        no_folder=("A folder does not exist.", '[capabilities.shell]\ncwd = "nowhere"', "Create it first."),
        outside=(
            "A folder lies outside of the workspace.",
            '[capabilities.shell]\ncwd = "/"',
            "Choose a folder of the workspace.",
        ),
        reserved_name=(
            "A policy is called `human`, which is built in.",
            "[sop.approval.policies.human]\nquorum = 2",
            "Give it another name, and make that the `default_policy`.",
        ),
        syntax=("The file is no TOML.", "[sop\n", "Correct it at the line."),
        too_large=("The file is larger than 1 MiB.", "A file of two megabytes", "Keep settings alone in it."),
        unavailable_kind=(
            "An agent is of a kind that this version does not have.",
            '[agents.coder]\nkind = "acp"\nmodel_provider = "scripted.a"\nrisk_profile = "careful"',
            'Write `kind = "local"`, or leave it out.',
        ),
        unknown_bundle=(
            "An agent names a bundle that is not declared.",
            '[agents.coder]\nmodel_provider = "scripted.a"\nrisk_profile = "careful"\nmcp_bundles = ["desk"]',
            "Declare `[mcp_bundles.desk]`, or correct the name.",
        ),
        unknown_group=(
            "A policy requires a group that is not declared.",
            f'{_POLICY}\nrequired_group = "editors"',
            "Declare `[sop.approval.groups.editors]` with `members`.",
        ),
        unknown_key=("A key or table is not known there.", '[sop]\nsop_dir = "sops"', "The message names the nearest."),
        unknown_notice=(
            "A route names a notice that is not declared.",
            '[sop.approval]\nrequest_route = "ops"',
            "Declare `[notices.ops]` with a `type`.",
        ),
        unknown_policy=(
            "A policy is named that is not declared.",
            '[sop.approval]\ndefault_policy = "release"',
            f"Declare `{_POLICY}`.",
        ),
        unknown_provider=(
            "An agent names a provider that is not declared.",
            '[agents.coder]\nmodel_provider = "openai.a"\nrisk_profile = "careful"',
            "Declare `[providers.models.openai.a]`.",
        ),
        unknown_risk_profile=(
            "An agent names a risk profile that is not declared.",
            '[agents.coder]\nmodel_provider = "scripted.a"\nrisk_profile = "careful"',
            "Declare `[risk_profiles.careful]`.",
        ),
        unknown_runtime_profile=(
            "An agent names a runtime profile that is not declared.",
            '[agents.coder]\nmodel_provider = "scripted.a"\nrisk_profile = "careful"\nruntime_profile = "short"',
            "Declare `[runtime_profiles.short]`, or leave the key out.",
        ),
        unknown_server=(
            "A bundle names a server that is not declared.",
            '[mcp_bundles.desk]\nservers = ["tickets"]',
            'Declare `[[mcp.servers]]` with `name = "tickets"`.',
        ),
        unknown_tool=(
            "A tool is named that there can be none of.",
            '[risk_profiles.careful]\nallowed_tools = ["file_raed"]',
            "Use a built-in tool, or `server__tool`.",
        ),
        unreadable=("The file cannot be read.", "A folder called `procedo.toml`", "Let the server read it."),
        unsatisfiable_policy=(
            "Fewer people may decide than the quorum wants.",
            f'[sop.approval.groups.editors]\nmembers = ["ida"]\n{_POLICY}\nrequired_group = "editors"\nquorum = 2',
            "Lower the quorum, or add members.",
        ),
        wrong_type=("A key stands where a table belongs.", "sop = 5", "Write it as a table of its own: `[sop]`."),
    )
)
"""By code, in the order of the alphabet."""
