"""Conditions and expressions in CEL, compiled when a definition is loaded.

The evaluator is imported at the first expression, because most definitions need none. What its variables
are: `inputs`, `steps["2"]`, `run`, `item`, `input`, and `output` where a report is judged. An error while an
expression is evaluated is never a silent false: the note of the answer tells it.
"""

import importlib.util
import re
import sys
from collections.abc import Callable, Mapping
from importlib.machinery import PathFinder
from types import ModuleType
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from procedo.core.conditions import ConditionError, type_name
from procedo.core.model import Condition, Expression, Json, Truth

if TYPE_CHECKING:
    import cel

__all__ = ["VARIABLES", "compile_condition", "compile_expression"]

VARIABLES: Final = ("inputs", "steps", "run", "item", "input", "output")
LONGEST: Final = 4096
"""How many characters an expression may have."""
DEEPEST: Final = 64
"""How many brackets may be open at once."""

_TOKEN: Final = re.compile(
    r"""(?P<string>[rRbB]{0,2}(?:\"\"\".*?\"\"\"|'''.*?'''|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'))
    |(?P<name>[A-Za-z_][A-Za-z0-9_]*)|(?P<number>\d[\w.]*)|(?P<sign>==|!=|<=|>=|&&|\|\||[^\s\w])|\s+""",
    re.VERBOSE | re.DOTALL,
)
_PLACE: Final = re.compile(r"<input>:(\d+):(\d+): (?:Syntax error: )?([^\n]*)")
_FAULTS: Final = (LookupError, TypeError, ValueError, RuntimeError, ArithmeticError, AttributeError)
"""What the evaluator raises: missing keys, types that do not go together, unknown names, overflows."""


class _Token(Struct, frozen=True):
    kind: str
    text: str
    at: int


class _Read(Struct, frozen=True):
    """A compiled program, the variables it needs, and the steps that it reads (None: not known before)."""

    program: "cel.Program"
    variables: tuple[str, ...]
    refs: frozenset[int] | None
    tokens: tuple[_Token, ...]


def compile_condition(
    text: str,
    ids: Mapping[str, str],
    *,
    variables: tuple[str, ...] = VARIABLES[:-1],
    known: frozenset[str] | None = None,
) -> Condition:
    """Compile a condition; `ids` gives the number of each step id. Raises `ConditionError` with the position.

    With `known` (the numbers that exist) a name below `steps` must be one of them.
    """
    read = _read(text, ids, variables, known)

    def test(scope: Mapping[str, Json]) -> Truth:
        return _test(read, scope)

    return Condition(text, test, read.refs)


def compile_expression(text: str) -> Expression:
    """Compile an expression over the inputs alone. Raises `ConditionError` with the position."""
    read = _read(text, {}, ("inputs",), None)

    def value(scope: Mapping[str, Json]) -> Json:
        try:
            found: Json = read.program.execute(_needed(read, scope))
        except _FAULTS as error:
            raise ValueError(f"{text!r} cannot be computed: {_fault(error)}") from error
        return found

    return Expression(text, value)


# --- compiling -----------------------------------------------------------------------------------


def _read(text: str, ids: Mapping[str, str], variables: tuple[str, ...], known: frozenset[str] | None) -> _Read:
    tokens = _tokens(text)
    source, refs = _steps(text, tokens, ids, known)
    program = _compiler()(text)  # the positions of its errors are those of the written text
    if source != text:
        program = _compiler()(source)
    bound = _bound(tokens)
    for name in program.variables():
        if name not in variables and name not in bound:
            at = next((token.at for token in tokens if token.text == name), 0)
            raise ConditionError(f"unknown name `{name}`; there are {', '.join(variables)}", at)
    needed = tuple(name for name in program.variables() if name in variables)
    return _Read(program, needed, refs, tokens)


def _evaluator() -> ModuleType:
    """The compiled evaluator without its package, which imports an interactive shell, a third of a start."""
    name = "cel.cel"
    if name in sys.modules:
        return sys.modules[name]
    package = importlib.util.find_spec("cel")
    spec = package and PathFinder.find_spec(name, package.submodule_search_locations)
    if spec is None or spec.loader is None:
        return importlib.import_module("cel")  # a release that is arranged in another way
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    # Under its own name: it can be initialised once in a process, and somebody else may import the package.
    sys.modules[name] = module
    return module


def _compiler() -> Callable[[str], "cel.Program"]:
    evaluator = _evaluator()

    def compiled(source: str) -> "cel.Program":
        try:
            program: cel.Program = evaluator.compile(source)
        except ValueError as error:
            raise _syntax_error(str(error), source) from error
        return program

    return compiled


def _syntax_error(message: str, source: str) -> ConditionError:
    found = _PLACE.search(message)
    if found is None:
        return ConditionError(message.splitlines()[0] if message else "it cannot be read", 0)
    line, column, what = int(found.group(1)), int(found.group(2)), found.group(3)
    before = sum(len(part) + 1 for part in source.split("\n")[: line - 1])
    what = re.sub(r" expecting \{.*", "", what)
    return ConditionError(what, min(before + column - 1, len(source)))


def _tokens(text: str) -> tuple[_Token, ...]:
    if len(text) > LONGEST:
        raise ConditionError(f"an expression has at most {LONGEST} characters", LONGEST)
    tokens: list[_Token] = []
    depth = 0
    for found in _TOKEN.finditer(text):
        if found.lastgroup is None:
            continue
        if found.group() == "=":
            raise ConditionError("`=` compares nothing; compare with `==`", found.start())
        tokens.append(_Token(found.lastgroup, found.group(), found.start()))
        depth += (found.group() in "([{") - (found.group() in ")]}") if found.lastgroup == "sign" else 0
        if depth > DEEPEST:
            raise ConditionError(f"more than {DEEPEST} brackets are open", found.start())
    return tuple(tokens)


def _bound(tokens: tuple[_Token, ...]) -> frozenset[str]:
    """Names that macros bind: `x` in `inputs.list.all(x, x > 1)`."""
    macros = {"all", "exists", "exists_one", "map", "filter"}
    return frozenset(
        tokens[at + 2].text
        for at in range(len(tokens) - 3)
        if tokens[at].text in macros and tokens[at + 1].text == "(" and tokens[at + 3].text == ","
    )


def _steps(
    text: str, tokens: tuple[_Token, ...], ids: Mapping[str, str], known: frozenset[str] | None
) -> tuple[str, frozenset[int] | None]:
    """The text with every step named by its number in quotes, and those numbers (None when one is computed)."""
    parts: list[str] = []
    refs: set[int] = set()
    computed, done = False, 0
    for at, token in enumerate(tokens):
        if token.kind != "name" or token.text != "steps" or (at and tokens[at - 1].text == "."):
            continue
        found = _step_name(tokens, at)
        if found is None:
            computed = True
            continue
        name, start, end = found
        number = ids.get(name, name)
        if known is not None and number not in known:
            raise ConditionError(f"there is no step {name}", start)
        if not number.isdigit():
            computed = True
            continue
        refs.add(int(number))
        parts += [text[done:start], f'["{number}"]']
        done = end
    return "".join([*parts, text[done:]]), None if computed else frozenset(refs)


def _step_name(tokens: tuple[_Token, ...], at: int) -> tuple[str, int, int] | None:
    """The step behind `steps`: its name, and the stretch [start, end) that names it."""
    rest = tokens[at + 1 : at + 4]
    if len(rest) > 1 and rest[0].text == "." and rest[1].kind == "name":
        return rest[1].text, rest[0].at, rest[1].at + len(rest[1].text)
    if len(rest) == 3 and rest[0].text == "[" and rest[2].text == "]" and rest[1].kind in ("string", "number"):
        return rest[1].text.strip("\"'"), rest[0].at, rest[2].at + 1
    return None


# --- testing -------------------------------------------------------------------------------------


def _needed(read: _Read, scope: Mapping[str, Json]) -> dict[str, Json]:
    return {name: _plain(scope[name]) for name in read.variables if name in scope}


def _plain(value: Json) -> Json:
    """Plain dictionaries and lists: the evaluator knows no others."""
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value


def _test(read: _Read, scope: Mapping[str, Json]) -> Truth:
    try:
        value: Json = read.program.execute(_needed(read, scope))
    except _FAULTS as error:
        return Truth(False, _fault(error))
    if not isinstance(value, bool):
        return Truth(False, f"the condition gave {type_name(value)}, not true or false")
    return Truth(value, "" if value else _mismatch(read.tokens, scope))


def _fault(error: Exception) -> str:
    if isinstance(error, KeyError):
        return f"{error.args[0] if error.args else 'something'!r} has no value"
    return str(error).split(". ")[0]


def _mismatch(tokens: tuple[_Token, ...], scope: Mapping[str, Json]) -> str:
    """A note for `path == literal` whose sides have different types: CEL calls them unequal without a word."""
    for at, token in enumerate(tokens):
        if token.text not in ("==", "!=") or at + 1 >= len(tokens):
            continue
        path = _path_before(tokens, at)
        literal = _literal_type(tokens[at + 1])
        value = _look_up(scope, path) if path else None
        if literal and value is not None and type_name(value) != literal:
            return f"{'.'.join(path)} is {type_name(value)} and was compared with {literal} {tokens[at + 1].text}"
    return ""


def _path_before(tokens: tuple[_Token, ...], at: int) -> list[str]:
    path: list[str] = []
    while at > 0:
        token = tokens[at - 1]
        if token.text == "]" and at > 2 and tokens[at - 2].kind in ("string", "number"):
            path.insert(0, tokens[at - 2].text.strip("\"'"))
            at -= 3
        elif token.kind == "name":
            path.insert(0, token.text)
            at -= 1
            if at == 0 or tokens[at - 1].text != ".":
                return path
            at -= 1
        else:
            return []
        if at > 0 and tokens[at - 1].text == ".":
            at -= 1
    return path


def _literal_type(token: _Token) -> str:
    if token.text in ("true", "false"):
        return "boolean"
    return {"string": "text", "number": "number"}.get(token.kind, "")


def _look_up(scope: Json, path: list[str]) -> Json:
    for name in path:
        if not isinstance(scope, Mapping) or name not in scope:
            return None
        scope = scope[name]
    return scope
