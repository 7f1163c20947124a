"""Compiles one step: its fields become the typed `Step`, with every reference resolved to a number."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from msgspec import Struct

from procedo.core import bindings
from procedo.core.model import Condition, FailureRule, Json, Kind, Mode, OnFailure, OnTimeout, Port, Scope, Step, Verify
from procedo.sopfile.cel import VARIABLES
from procedo.sopfile.resolution import Place, Resolver
from procedo.sopfile.source import StepSource

__all__ = ["compile_step"]

_KINDS: Final[Mapping[str, Kind]] = {"capability": Kind.CAPABILITY, "sop": Kind.SOP, "wait": Kind.WAIT}
_NEEDS: Final[Mapping[str, tuple[str, str]]] = {
    "on_timeout": ("timeout", "it tells what follows when `timeout` is exceeded"),
    "max_parallel": ("for_each", "it bounds the items of `for_each`"),
    "routing.else": ("routing.switch", "it belongs to a `switch`"),
}


def compile_step(source: StepSource, resolver: Resolver) -> Step:
    """The step; what is wrong with it is told, and left out of the result."""
    resolver.used = set()
    form = _Form(source, resolver)
    kind = form.kind()
    form.needs(kind)
    wait = form.value("wait") or {}
    allow = form.value("scope.allow")
    tools: tuple[str, ...] = form.value("suggested_tools") or ()
    parts: dict[str, Any] = {
        "number": source.number,
        "title": source.title or form.value("capability") or ("" if _in_markdown(source) else kind.value),
        "id": form.value("id"),
        "kind": kind,
        "agent": form.value("agent"),
        "tools": tools,
        "scope": Scope(allow if allow is not None else (tools or None), form.value("scope.deny") or ()),
        "requires_confirmation": bool(form.value("requires_confirmation")),
        "mode": Mode(form.value("mode")) if form.value("mode") else None,
        "policy": form.value("policy"),
        "edit": form.value("edit"),
        "capability": form.value("capability"),
        "has_arguments": "with" in source.fields,
        "sub_sop": form.value("sop"),
        "wait_s": wait.get("for_s"),
        "terminal": bool(form.value("routing.terminal")),
        "timeout_s": form.value("timeout"),
        "on_timeout": OnTimeout(form.value("on_timeout") or OnTimeout.FAIL),
        "max_parallel": form.value("max_parallel") or 1,
        "extensions": source.extensions,
        "line": source.line,
    }
    parts |= form.texts(wait.get("until"))
    parts |= form.routing()
    parts |= form.contracts()
    sees = parts["sees"]
    return Step(**parts, reads=frozenset(resolver.used).union(sees, parts["depends_on"]))


def _in_markdown(source: StepSource) -> bool:
    return source.file.endswith(".md")


class _Form(Struct, frozen=True):
    """The fields of one step, read one group at a time."""

    source: StepSource
    resolver: Resolver

    def value(self, name: str) -> Json:
        mark = self.source.fields.get(name)
        return None if mark is None else mark.value

    def place(self, name: str) -> Place:
        return Place(self.source.file, self.source.line_of(name), name.rsplit(".", 1)[-1])

    def tell(self, code: str, name: str, message: str, hint: str = "") -> None:
        self.resolver.findings.add(code, self.source.file, self.source.line_of(name), message, hint)

    def kind(self) -> Kind:
        """The declared kind, or the one that a field implies."""
        given = [name for name in _KINDS if name in self.source.fields]
        if len(given) > 1:
            self.tell("field-conflict", given[1], f"one step cannot have {' and '.join(given)}", "make two steps of it")
        declared = self.value("kind")
        if declared is None:
            return _KINDS[given[0]] if given else Kind.EXECUTE
        kind = Kind(declared)
        for name in given:
            if _KINDS[name] is not kind:
                self.tell("field-conflict", name, f"{name!r} contradicts kind {kind.value!r}", "remove one of them")
        if kind.value in _KINDS and kind.value not in given:
            hint = f"say which with `{kind.value}`"
            self.tell("missing-key", "kind", f"a step of kind {kind.value!r} has no {kind.value!r}", hint)
        return kind

    def needs(self, kind: Kind) -> None:
        """Fields that have no effect without another one."""
        for name, (other, why) in _NEEDS.items():
            if name in self.source.fields and other not in self.source.fields:
                self.tell("no-effect", name, f"{name.rsplit('.', 1)[-1]!r} has no effect here", why)
        if "with" in self.source.fields and kind not in (Kind.CAPABILITY, Kind.SOP):
            self.tell(
                "no-effect", "with", "'with' has no effect here", "it belongs to a capability or another procedure"
            )
        if "edit" in self.source.fields and kind is not Kind.CHECKPOINT:
            self.tell("no-effect", "edit", "'edit' has no effect here", "only the input of a checkpoint can be amended")

    # --- texts with bindings

    def texts(self, until: str | None) -> dict[str, Any]:
        source, resolver = self.source, self.resolver
        body = Place(source.file, source.line, "the body", source.body_lines)
        prompt = self.value("gate_prompt")
        if prompt is not None:
            prompt = resolver.template(prompt, self.place("gate_prompt"), bare="input")
        return {
            "body": resolver.template(source.body, body),
            "gate_prompt": prompt,
            "arguments": resolver.template(self.value("with"), self.place("with")),
            "calls": tuple(
                resolver.template(call, self.place("calls"), calls=index)
                for index, call in enumerate(self.value("calls") or ())
            ),
            "for_each": self._for_each(),
            "wait_until": self._until(until),
        }

    def _for_each(self) -> str | None:
        text = self.value("for_each")
        if text is None:
            return None
        resolved: str = self.resolver.template(text, self.place("for_each"))
        if not _is_one_binding(resolved):
            self.tell("bad-value", "for_each", f"for_each: expected one binding, got {text!r}", "{{steps.1.items}}")
        return resolved

    def _until(self, text: str | None) -> str | None:
        if text is None:
            return None
        resolved: str = self.resolver.template(text, self.place("wait"))
        if "{{" not in text and not _is_moment(text):
            hint = "write a binding, or a time with its zone: 2030-01-31T09:00:00Z"
            self.tell("bad-value", "wait", f"wait until: {text!r} is no time", hint)
        return resolved

    # --- where to go

    def routing(self) -> dict[str, Any]:
        resolver = self.resolver
        rule = self.value("on_failure") or {"retries": 0, "backoff_s": 0.0, "goto": None}
        goto = rule["goto"]
        target = None if goto is None else resolver.step(goto, self.place("on_failure"))
        kind = OnFailure.RETRY if rule["retries"] else OnFailure.FAIL if goto is None else OnFailure.GOTO
        on_deny = self.value("on_deny")
        return {
            "precondition": self._condition("if"),
            "when": self._condition("routing.when"),
            "switch": self._switch(),
            "next": resolver.steps(self.value("routing.next") or (), self.place("routing.next")),
            "depends_on": resolver.steps(self.value("routing.depends_on") or (), self.place("routing.depends_on")),
            "on_failure": FailureRule(kind, rule["retries"], rule["backoff_s"], target),
            "on_deny": None if on_deny is None else resolver.step(on_deny, self.place("on_deny")),
            "sees": resolver.steps(self.value("context") or (), self.place("context")),
        }

    def _condition(self, name: str) -> Condition | None:
        text = self.value(name)
        return self.resolver.condition(text, self.place(name)) if text is not None else None

    def _switch(self) -> tuple[Port, ...]:
        ports: list[Port] = []
        place = self.place("routing.switch")
        for port in self.value("routing.switch") or ():
            if ports and ports[-1].when is None:
                message = f"port {port['name']!r} comes after the catch-all {ports[-1].name!r}"
                self.tell("port-never-taken", "routing.switch", message, "put the port without a guard last")
            guard = self.resolver.condition(port["when"], place) if port["when"] else None
            if port["when"] and guard is None:
                continue
            ports.append(Port(port["name"], guard, self.resolver.target(port["goto"], place)))
        fallback = self.value("routing.else")
        if fallback is not None and ports:
            if ports[-1].when is None:
                message = f"the catch-all {ports[-1].name!r} comes before 'else'"
                self.tell("port-never-taken", "routing.else", message, "keep one of them")
            ports.append(Port("else", None, self.resolver.target(fallback, self.place("routing.else"))))
        return tuple(ports)

    # --- what must hold

    def contracts(self) -> dict[str, Any]:
        return {
            "input_schema": self._schema("schema.input"),
            "output_schema": self._schema("schema.output"),
            "verify": self._verify(),
        }

    def _schema(self, name: str) -> Any:
        mark = self.source.fields.get(name)
        return None if mark is None else self.resolver.schema(mark.value, self.place(name))

    def _verify(self) -> Verify | None:
        value = self.value("verify")
        if value is None:
            return None
        if "condition" in value:
            condition = self.resolver.condition(value["condition"], self.place("verify"), VARIABLES)
            return None if condition is None else Verify(condition=condition)
        arguments = self.resolver.template(value["with"], self.place("verify"))
        return Verify(capability=value["capability"], arguments=arguments)


def _is_one_binding(text: str) -> bool:
    bare = text.strip()
    if "{{" not in bare:
        return False
    try:
        return len(bindings.references(bare)) == 1 and bare.startswith("{{") and bare.find("}}") == len(bare) - 2
    except bindings.BindingError:
        return True  # told already


def _is_moment(text: str) -> bool:
    try:
        return datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        return False
