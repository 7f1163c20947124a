import pytest

from procedo.core.access import EVERYTHING, Access, Role, roles
from procedo.core.principal import Principal, PrincipalKind, Source
from procedo.errors import Refused

IDA = Principal(Source.HTTP, "ida", PrincipalKind.HUMAN)

MAY = {
    frozenset[Role](): set[Role](),
    frozenset({Role.VIEW}): {Role.VIEW},
    frozenset({Role.OPERATE}): {Role.VIEW, Role.OPERATE},
    frozenset({Role.APPROVE}): {Role.VIEW, Role.APPROVE},
    EVERYTHING: set(Role),
}


@pytest.mark.parametrize(("given", "expected"), MAY.items(), ids=lambda value: "+".join(sorted(value)) or "none")
def test_a_role_opens_itself_and_looking(given: frozenset[Role], expected: set[Role]) -> None:
    assert {role for role in Role if Access(IDA, given).may(role)} == expected


def test_a_missing_role_is_refused_with_what_it_is_for_and_what_there_is() -> None:
    with pytest.raises(Refused) as refusal:
        Access(IDA, frozenset({Role.VIEW})).require(Role.APPROVE)
    assert refusal.value.code == "not_permitted"
    assert "may not decide at gates: that needs the role approve, and the roles here are: view" in str(refusal.value)


def test_a_role_that_is_there_is_not_refused() -> None:
    Access(IDA, frozenset({Role.APPROVE})).require(Role.APPROVE)


def test_words_that_name_no_role_open_nothing() -> None:
    assert roles(["approve", "APPROVE", "admin", ""]) == frozenset({Role.APPROVE})
