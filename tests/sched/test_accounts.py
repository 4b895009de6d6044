"""Accounts: what makes a tree of them, who may use which, and what is said where they do not fit together."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobman.sched.accounts import DEFAULT, ROOT, Account, AccountsError, AccountTree

NAMES = "abcdef"


def tree(*accounts):
    return AccountTree(accounts)


def account(name, parent=ROOT, users=(), **rest):
    return Account(name=name, parent=parent, users=dict.fromkeys(users, 1.0), **rest)


def problems_of(*accounts):
    with pytest.raises(AccountsError) as error:
        AccountTree(accounts)
    return list(error.value.problems)


SITE = tree(
    account("science"),
    account("physics", "science", ["anna", "bert"]),
    account("optics", "physics", ["anna"]),
    account("trade", users=["carl"]),
)


# -- without configuration


def test_without_accounts_everybody_uses_the_default_one():
    nothing = AccountTree()
    assert nothing.order == (DEFAULT,)
    assert nothing.default_of("anna") == DEFAULT
    assert nothing.may_use("anna")
    assert nothing.may_use("anna", DEFAULT)
    assert nothing.path(DEFAULT) == (DEFAULT,)


def test_who_is_in_no_account_uses_the_default_one_beside_the_others():
    assert SITE.default_of("zoe") == DEFAULT
    assert SITE.may_use("zoe")
    assert SITE.children() == ("science", "trade", DEFAULT)


def test_a_site_may_write_the_default_account_down():
    site = tree(account("science"), account(DEFAULT, "science", shares=3.0))
    assert site[DEFAULT].shares == 3.0
    assert site.path(DEFAULT) == (DEFAULT, "science")
    assert site.may_use("zoe", DEFAULT)


def test_a_site_closes_its_door_to_strangers_by_a_default_account_that_is_not_active():
    site = tree(account("trade", users=["carl"]), account(DEFAULT, active=False))
    assert site.may_use("carl")
    assert site.obstacle("zoe") == "account default is not active"


# -- lookups


def test_the_path_goes_up_to_the_topmost():
    assert SITE.path("optics") == ("optics", "physics", "science")
    assert SITE.path("trade") == ("trade",)


def test_an_account_that_is_gone_stands_alone():
    assert SITE.path("alchemy") == ("alchemy",)
    assert "alchemy" not in SITE
    assert SITE.get("alchemy") is None
    assert not SITE.members("alchemy")


def test_the_first_account_that_names_a_user_is_the_users_default():
    assert SITE.default_of("anna") == "physics"
    assert SITE.accounts_of("anna") == ("physics", "optics", DEFAULT)
    assert SITE.resolve("anna") == "physics"
    assert SITE.resolve("anna", "optics") == "optics"


def test_members_have_their_shares():
    site = AccountTree([Account(name="physics", users={"anna": 3.0, "bert": 1.0})])
    assert site.members("physics") == {"anna": 3.0, "bert": 1.0}


def test_who_is_in_an_account_is_not_thereby_in_those_above_or_below():
    assert SITE.may_use("anna", "optics")
    assert not SITE.may_use("anna", "science")
    assert not SITE.may_use("bert", "optics")


# -- refusals


def test_a_refusal_says_what_may_be_used_instead():
    assert (
        SITE.obstacle("bert", "trade") == "user bert is not in account trade; bert may use physics or default"
    )
    assert SITE.obstacle("bert", "alchemy") == "there is no account alchemy; bert may use physics or default"


def test_an_account_is_not_active_where_one_above_it_is_not():
    site = tree(account("science", active=False), account("physics", "science", ["anna"]))
    assert site.obstacle("anna") == "account physics is not active, because science is not"
    assert site.obstacle("anna", "alchemy") == "there is no account alchemy; anna may use default"


# -- what does not make a tree


def test_all_problems_are_said_at_once():
    assert problems_of(
        account("a", "b"),
        account("b", "a"),
        account("c", "nowhere"),
        account("d", shares=0.0),
        account("d"),
        Account(name="e", users={"anna": -1.0, "bert": float("nan")}),
    ) == [
        "account d has 0 shares; give it more than 0",
        "there are two accounts named d; give one another name",
        "user anna of account e has -1 shares; give more than 0",
        "user bert of account e has nan shares; give more than 0",
        "account c is below nowhere, which is not there; name an account, or leave `parent` out",
        "accounts go round in a circle: a below b below a; give one another parent",
    ]


def test_an_account_is_not_below_itself():
    assert problems_of(account("a", "a")) == [
        "account a is below itself; give it another parent, or none",
    ]


def test_a_circle_is_told_once_from_the_account_that_was_written_first():
    found = problems_of(account("x", "c"), account("b", "c"), account("c", "b"), account("y", "x"))
    assert found == ["accounts go round in a circle: b below c below b; give one another parent"]


def test_an_account_needs_a_name():
    assert problems_of(account("")) == ["an account has no name; give it one"]


def test_shares_without_end_are_no_shares():
    assert problems_of(account("a", shares=float("inf"))) == [
        "account a has inf shares; give it more than 0",
    ]


def test_the_error_is_readable_as_it_is():
    with pytest.raises(AccountsError, match="nowhere"):
        tree(account("a", "nowhere"))


# -- for all trees


@st.composite
def forests(draw):
    """Accounts whose parents come before them, in any order of writing."""
    accounts = []
    for number, name in enumerate(NAMES[: draw(st.integers(0, len(NAMES)))]):
        parent = draw(st.sampled_from([ROOT, DEFAULT, *NAMES[:number]]))
        users = draw(st.lists(st.sampled_from(["anna", "bert", "carl"]), unique=True))
        accounts.append(account(name, parent, users))
    return draw(st.permutations(accounts))


@given(forests())
def test_every_account_comes_after_its_parent_and_once(accounts):
    site = AccountTree(accounts)
    assert sorted(site.order) == sorted({DEFAULT, *(each.name for each in accounts)})
    for name in site.order:
        above = site.path(name)[1:]
        assert all(site.order.index(one) < site.order.index(name) for one in above)


@given(forests())
def test_a_path_is_the_parents_path_with_the_account_before_it(accounts):
    site = AccountTree(accounts)
    for name in site.order:
        parent = site[name].parent
        assert site.path(name) == (name, *(site.path(parent) if parent else ()))
        assert name in site.children(parent)


@given(forests())
def test_below_an_account_are_those_whose_path_goes_through_it(accounts):
    site = AccountTree(accounts)
    for name in site.order:
        assert set(site.below(name)) == {one for one in site.order if name in site.path(one)}
        assert site.below(name)[0] == name
        assert len(site.below(name)) == len(set(site.below(name)))
    assert site.below("alchemy") == ("alchemy",)


@given(forests(), st.sampled_from(["anna", "bert", "carl", "zoe"]))
def test_a_user_may_always_use_the_own_default_account(accounts, user):
    site = AccountTree(accounts)
    assert site.may_use(user)
    assert {name for name in site.order if site.may_use(user, name)} == set(site.accounts_of(user))


@given(st.dictionaries(st.sampled_from(NAMES), st.sampled_from([ROOT, *NAMES])))
def test_accounts_are_taken_exactly_where_all_ways_lead_to_the_top(parents):
    def reaches_top(name):
        for _ in range(len(parents) + 1):
            if name == ROOT:
                return True
            if name not in parents:
                return False
            name = parents[name]
        return False

    given_ = [account(name, parent) for name, parent in parents.items()]
    if all(map(reaches_top, parents)):
        assert set(parents) <= set(AccountTree(given_).order)
    else:
        assert problems_of(*given_)
