"""`/v1/usage`: statements of what was used, and what it cost."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from jobman.control.accounting.statements import By, Usage, as_csv, statement
from jobman.control.api.call import Call
from jobman.control.api.endpoint import Reply, Resource
from jobman.control.api.query import Moment, Query, Text
from jobman.control.store.views import UsageFilter

usage = Resource("usage")
CSV = "text/csv; charset=utf-8"
_NOBODY = ""
"""The owner of nothing: what others used does not exist, as far as a user can see."""

Lines = Annotated[int, msgspec.Meta(ge=1, le=100_000, description="The most lines.")]


class UsageQuery(Query, kw_only=True):
    """Of whom, of when, and what is told apart."""

    account: Annotated[Text, msgspec.Meta(description="With all accounts below it.")] | None = None
    user: Text | None = None
    since: Annotated[Moment, msgspec.Meta(description="Slices that end then or later.")] | None = None
    until: Annotated[Moment, msgspec.Meta(description="Slices that end before then.")] | None = None
    by: By = "account"
    format: Literal["json", "csv"] = "json"
    limit: Lines = 1000


@usage.serve("GET", "/v1/usage", query=UsageQuery, answers={200: (Usage, CSV)}, refuses=("store",))
def show_usage(call: Call, query: UsageQuery) -> Usage | Reply:
    """What was used and charged, added up. Users see their own; administrators everybody's."""
    owner = query.user or call.caller.horizon
    if owner is not None and not call.caller.sees(owner):
        owner = _NOBODY
    accounts = call.director.accounts
    meant = None if query.account is None else accounts.below(query.account)
    wanted = UsageFilter(accounts=meant, owner=owner, since=query.since, until=query.until)
    found = statement(call.store, wanted, query.by, query.limit, accounts)
    return found if query.format == "json" else Reply(as_csv(found).encode(), media=CSV)
