"""The collector of reference cycles, while it is held and afterwards."""

import gc

import pytest

from jobman.garbage import collector_paused, freeze, thaw


def test_it_is_held_and_goes_on_afterwards():
    with collector_paused():
        assert not gc.isenabled()
    assert gc.isenabled()


def test_who_holds_it_around_another_holds_it_to_the_end():
    with collector_paused():
        with collector_paused():
            pass
        assert not gc.isenabled()
    assert gc.isenabled()


def test_it_goes_on_after_a_fault():
    with pytest.raises(ValueError, match="fault"), collector_paused():
        raise ValueError("fault")
    assert gc.isenabled()


def test_what_somebody_froze_stays_so():
    freeze()
    with collector_paused():
        pass
    assert gc.get_freeze_count()
    thaw()
    assert not gc.get_freeze_count()


def test_what_was_made_meanwhile_is_not_young_any_more():
    with collector_paused():
        made: list[list[int]] = [[] for _ in range(10_000)]
    assert gc.get_count()[0] < 10_000
    assert any(each is made for each in gc.get_objects(generation=2))
