"""`/v1/tokens`: who may speak to a shared service."""

from __future__ import annotations

from jobman.control.answers import Listing, NewToken, Token, TokenMade
from jobman.control.api.call import Call
from jobman.control.api.endpoint import Reply, Resource
from jobman.control.api.identity import Tokens
from jobman.control.refusals import Refusal
from jobman.control.store.records import TokenRecord

tokens = Resource("tokens")
_REFUSES = ("forbidden", "cannot", "store")


@tokens.serve(
    "POST",
    "/v1/tokens",
    body=NewToken,
    answers={201: TokenMade},
    refuses=(*_REFUSES, "wrong-state"),
    admin=True,
)
def make_token(call: Call, wanted: NewToken) -> Reply:
    """Make a token. It is shown this once."""
    record, token = _book(call).make(wanted.name, wanted.user, wanted.role)
    known = _answer(record)
    made = TokenMade(
        name=known.name, user=known.user, role=known.role, created_at=known.created_at, token=token
    )
    return Reply(made, 201)


@tokens.serve("GET", "/v1/tokens", answers={200: Listing[Token]}, refuses=_REFUSES, admin=True)
def list_tokens(call: Call) -> Listing[Token]:
    """List the tokens there are and were."""
    return Listing(items=[_answer(record) for record in _book(call).all()])


@tokens.serve(
    "DELETE",
    "/v1/tokens/{name}",
    answers={200: Token},
    refuses=(*_REFUSES, "no-such-token", "wrong-state"),
    admin=True,
)
def revoke_token(call: Call) -> Token:
    """Revoke a token: it lets nobody in any more."""
    return _answer(_book(call).revoke(call.part("name")))


def _book(call: Call) -> Tokens:
    if call.desk.tokens is None:
        raise Refusal(
            "cannot", "The service of one user has no tokens.", "jobman server starts a shared one."
        )
    return call.desk.tokens


def _answer(record: TokenRecord) -> Token:
    return Token(
        name=record.name,
        user=record.user,
        role="admin" if record.role == "admin" else "user",
        created_at=record.created_at,
        revoked_at=record.revoked_at,
    )
