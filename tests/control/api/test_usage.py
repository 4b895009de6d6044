"""`/v1/usage`: who sees what, and in which form."""

from __future__ import annotations

from typing import Any

import pytest

from jobman.control.store.records import Changes
from jobman.sched.accounts import Account, AccountTree
from tests.control.api.world import World
from tests.control.store.builders import NOON, slice_of


@pytest.fixture
def spent(shared: World) -> World:
    """A service in which the administrator and a user have used something."""
    user = shared.caller(shared.token("eve"))
    for number, caller in enumerate((shared.http, user)):
        id = shared.submit(f"job{number}", caller)
        record = shared.director.store.job(id)
        assert record is not None
        slices = [slice_of(record, n, account="physics", units=float(number + 1)) for n in range(3)]
        shared.let(shared.director.store.write, Changes(slices=slices))
    user.close()
    return shared


def lines(world: World, token: str | None = None, **query: Any) -> list[tuple[str, float]]:
    """The lines of a statement by user."""
    caller = world.caller(token or world.admin)
    answer = caller.get("/v1/usage", params={"by": "user", **query})
    caller.close()
    assert answer.status_code == 200, answer.text
    return [(line["user"], line["units"]) for line in answer.json()["items"]]


def token_of(world: World, user: str) -> str:
    made = world.http.post("/v1/tokens", json={"name": f"second-of-{user}", "user": user, "role": "user"})
    return str(made.json()["token"])


def test_administrators_see_everybodys_and_users_their_own(spent: World) -> None:
    everybody = lines(spent)
    assert [units for _, units in everybody] == [6.0, 3.0]
    assert everybody[0][0] == "eve"
    eve = token_of(spent, "eve")
    assert lines(spent, eve) == [("eve", 6.0)]
    assert lines(spent, eve, user="eve") == [("eve", 6.0)]
    assert lines(spent, eve, user=everybody[1][0]) == []
    assert lines(spent, user="eve") == [("eve", 6.0)]


def test_the_total_of_a_user_is_only_of_that_user(spent: World) -> None:
    caller = spent.caller(token_of(spent, "eve"))
    assert caller.get("/v1/usage").json()["total"]["units"] == 6.0
    caller.close()


def test_account_and_time_narrow_it_down(spent: World) -> None:
    assert lines(spent, account="physics") == lines(spent)
    assert lines(spent, account="biology") == []
    assert [units for _, units in lines(spent, since=NOON + 100)] == [4.0, 2.0]
    assert [units for _, units in lines(spent, since=NOON + 100, until=NOON + 150)] == [2.0, 1.0]


def test_an_account_is_told_with_those_below_it(spent: World) -> None:
    accounts = [Account(name="science"), Account(name="physics", parent="science")]
    spent.director.accounts = AccountTree(accounts)
    assert lines(spent, account="science") == lines(spent)
    answer = spent.http.get("/v1/usage", params={"account": "science"}).json()
    found = [(line["account"], line["parent"], line["units"], line["below"]) for line in answer["items"]]
    assert found == [("science", None, 0.0, 9.0), ("physics", "science", 9.0, 0.0)]
    assert answer["total"]["units"] == answer["items"][0]["in_all"] == 9.0
    eve = spent.caller(token_of(spent, "eve"))
    mine = eve.get("/v1/usage", params={"account": "science"}).json()
    assert [line["in_all"] for line in mine["items"]] == [6.0, 6.0]
    eve.close()


def test_an_answer_says_what_was_asked(spent: World) -> None:
    answer = spent.http.get("/v1/usage", params={"by": "job", "since": 1, "limit": 1}).json()
    assert (answer["by"], answer["since"], answer["until"], answer["more"]) == ("job", 1.0, None, True)
    assert (answer["items"][0]["name"], answer["items"][0]["account"]) == ("job1", "physics")
    assert answer["total"]["units"] == 9.0


def test_csv_is_given_where_it_is_asked_for(spent: World) -> None:
    answer = spent.http.get("/v1/usage", params={"format": "csv", "by": "account"})
    assert answer.headers["content-type"].startswith("text/csv")
    assert answer.text.splitlines()[1].startswith("physics,2,")


@pytest.mark.parametrize("query", ["by=moon", "format=xml", "limit=0", "since=x", "colour=red"])
def test_what_makes_no_sense_is_refused(spent: World, query: str) -> None:
    assert spent.http.get(f"/v1/usage?{query}").status_code == 400


def test_the_client_asks_for_the_same(spent: World) -> None:
    client = spent.client()
    found = client.usage(by="user", account="physics")
    assert [line.units for line in found.items] == [6.0, 3.0]
    assert client.usage_csv(by="user").splitlines()[1].startswith("eve,1,")
    client.close()


def test_strangers_see_nothing(spent: World) -> None:
    caller = spent.caller()
    assert caller.get("/v1/usage").status_code == 401
    caller.close()
