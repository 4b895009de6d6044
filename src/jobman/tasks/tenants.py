"""Who asks: a token names its tenant; where nobody has tokens, everybody is who they say they are."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from jobman.tasks.submissions import Refusal
from jobman.tasks.wire import Request

TENANT = "x-jobman-tenant"
OPERATOR = "operator"
"""The tenant whose token agents and scalers bear, where nothing else is said."""
_DEFAULT = "default"


class Tenants:
    """Tokens and the tenants they name; operators may also see and execute what others have."""

    def __init__(
        self, tokens: Mapping[str, str] | None = None, operators: Collection[str] = (OPERATOR,)
    ) -> None:
        self._tokens = tokens
        self._operators = frozenset(operators)

    def of(self, request: Request) -> str:
        """The tenant that asks; raises Refusal for a stranger."""
        if self._tokens is None:
            return request.headers.get(TENANT, _DEFAULT)
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        tenant = self._tokens.get(token.strip()) if scheme.lower() == "bearer" else None
        if tenant is None:
            advice = "send `authorization: Bearer TOKEN` with a token that this broker knows"
            raise Refusal("unauthorized", "nobody is known by this token", advice)
        return tenant

    def is_operator(self, request: Request) -> bool:
        """Whether who asks may see and decide what concerns all; everybody, where nobody has tokens."""
        return self._tokens is None or self.of(request) in self._operators

    def sees_all(self, request: Request) -> bool:
        """Whether who asks may see what happens to everybody's tasks: also who has the machine to itself."""
        return self.is_operator(request) and (self._tokens is not None or self.of(request) == _DEFAULT)

    def check_operator(self, request: Request) -> None:
        """Raises Refusal unless an operator asks."""
        if not self.is_operator(request):
            raise Refusal("forbidden", "this is for agents and scalers", "use the token of an operator")
