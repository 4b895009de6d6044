"""Prices: what an hour of an allocation costs."""

import pytest

from jobman.control.accounting.prices import Prices, amounts_of, cores_of, flavors_of
from tests.control.accounting.builders import GIB, NODES, holding, part

USUAL = Prices()


def cost(parts, *nodes, prices=USUAL, whole=False):
    return prices.an_hour(holding(parts, *nodes, whole=whole), tuple(parts), NODES)


def test_a_core_for_an_hour_is_a_unit():
    assert cost([part(core=1)], "n1") == 1.0
    assert cost([part(4, core=2)], "n1", "n2") == 8.0
    assert cost([part(core=0.5)], "n1") == 0.5


def test_the_usual_price_is_a_setting():
    assert cost([part(core=2)], "n1", prices=Prices(0.25)) == 0.5


@pytest.mark.parametrize(
    ("each", "cores"),
    [
        ({"core": 1, "memory": 16 * GIB}, 4.0),
        ({"core": 1, "gpu": 1}, 4.0),
        ({"core": 6, "gpu": 1}, 6.0),
        ({"memory": 32 * GIB}, 8.0),
        ({"licence": 3, "core": 1}, 1.0),
    ],
)
def test_who_holds_much_of_anything_pays_for_the_cores_nobody_else_can_use(each, cores):
    assert cost([part(**each)], "n1") == cores


def test_a_node_held_as_a_whole_costs_all_of_its_cores():
    assert cost([part(core=1)], "n1", whole=True) == 8.0
    assert cost([part(2, core=1)], "n1", "big", whole=True) == 72.0


def test_a_node_nobody_knows_any_more_costs_the_cores_that_were_held():
    assert cores_of(holding([part(core=3)], "n1"), {}) == 3.0


def test_a_flavor_with_a_price_costs_that_for_each_copy():
    prices = Prices(1.0, {"small": 5.0, "free": 0.0})
    assert cost([part(3, "small", core=2)], "n1", "n2", prices=prices) == 15.0
    assert cost([part(3, "free", core=2)], "n1", prices=prices) == 0.0
    assert cost([part(3, "other", core=2)], "n1", prices=prices) == 6.0


def test_a_flavor_on_a_whole_node_costs_as_much_as_there_is_room_for():
    prices = Prices(1.0, {"small": 5.0})
    assert cost([part(1, "small", core=2)], "n1", prices=prices, whole=True) == 20.0


def test_flavors_side_by_side_cost_what_each_does():
    prices = Prices(1.0, {"small": 5.0, "large": 50.0})
    parts = [part(2, "small", core=1), part(1, "large", core=1, gpu=1)]
    assert cost(parts, "n1", prices=prices) == 60.0


def test_parts_without_a_price_pay_by_their_share_of_the_copies():
    prices = Prices(1.0, {"small": 5.0})
    parts = [part(1, "small", core=4), part(1, core=4)]
    assert cost(parts, "n1", prices=prices) == 5.0 + 8.0 / 2


def test_what_is_held_is_told_in_all():
    held = holding([part(4, core=2, gpu=1)], "n1", "n2")
    assert amounts_of(held) == {"core": 8, "gpu": 4, "node": 2.0}


def test_flavors_are_named_as_a_shape_would_join_them():
    assert flavors_of((part(flavor="small"), part(flavor="large"), part(flavor="small"))) == "small&large"
    assert flavors_of((part(),)) == ""
