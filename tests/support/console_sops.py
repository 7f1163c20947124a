"""Procedures for the console's catalogue: one with every kind of input, one broken, one with foreign markup in it."""

from collections.abc import Mapping

from mcp_host import ALL

__all__ = ["BROKEN", "CATALOGUE", "CONFIG", "MARKUP", "ORDER"]

ORDER: Mapping[str, str] = {
    "SOP.toml": """
[sop]
name = "order-tea"
description = "Order tea for the house, with somebody who signs for it."
priority = "high"
execution_mode = "auto"
max_concurrent = 2
key = "inputs.name"
x-tags = ["kitchen", "buying"]

[inputs]
type = "object"
required = ["name", "sort"]
additionalProperties = false

[inputs.properties.name]
type = "string"
title = "Your name"
description = "Who orders."
maxLength = 20

[inputs.properties.sort]
description = "What is drunk."
enum = ["green", "black"]

[inputs.properties.shop]
description = "Where it is bought."
enum = ["corner", "market", "harbour", "station", "online", "cousin"]
default = "market"

[inputs.properties.grams]
type = "integer"
minimum = 50
maximum = 2000
default = 250

[inputs.properties.urgent]
type = "boolean"

[inputs.properties.by]
type = "string"
format = "date"
description = "The day on which it is wanted."

[inputs.properties.note]
type = "string"
description = "Anything else."

[inputs.properties.guests]
type = "array"
items = { type = "string" }

[inputs.properties.address]
type = "object"
required = ["street"]
properties = { street = { type = "string", maxLength = 40 }, door = { type = "integer" } }

[inputs.properties.extras]
type = "array"
description = "What else is in the parcel."

[inputs.properties.extras.items]
type = "object"
required = ["what"]
properties = { what = { type = "string", maxLength = 30 }, count = { type = "integer", default = 1 } }

[inputs.properties.limit]
anyOf = [{ type = "integer" }, { enum = ["none"] }]
description = "What it may cost at most."
""",
    "SOP.md": """
## Steps

1. **Choose** — Find {{inputs.sort}} tea for {{inputs.name}}.
2. **Sign** — Somebody signs for it.
   - kind: checkpoint
   - policy: two
3. **Order** — Order it.
""",
}
BROKEN: Mapping[str, str] = {
    "SOP.toml": """
[sop]
name = "bake-bread"
description = "Bake bread"
prioritty = "high"
""",
    "SOP.md": "## Steps\n\n1. **Mix** — Mix it.\n   - next: 7\n",
}
MARKUP: Mapping[str, str] = {
    "SOP.toml": """
[sop]
name = "odd"
description = "<script>alert('description')</script>\\u202e"

[inputs]
type = "object"
properties = { q = { type = "string", title = "<b>q</b>", default = "<i>\\"'</i>" } }
""",
    "SOP.md": "## Steps\n\n1. **<img src=x onerror=alert(1)>** — Do it. <script>alert('body')</script>\n",
}
CATALOGUE: Mapping[str, Mapping[str, str]] = {**ALL, "order-tea": ORDER, "bread": BROKEN, "odd": MARKUP}
CONFIG = """
[sop.approval.groups.signers]
members = ["ida", "noor"]

[sop.approval.policies.two]
required_group = "signers"
quorum = 2
"""
