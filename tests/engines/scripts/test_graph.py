"""A plan as jobs of a manager: whatever waits for something is submitted after it, and says so."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobman.engines.scripts.graph import CLOSER, Piece, is_plain, pieces_of
from jobman.plan.model import Plan
from jobman.spec.problems import SpecError
from tests.engines.scripts.running import ONE, plan_of

WHENS = ("success", "failure", "any", "started", "ready")
READY = "checks: {ready: {exec: ['true']}}"


@st.composite
def graphs(draw: st.DrawFn) -> Plan:
    """Tasks that wait for others above or below them, never in a circle."""
    count = draw(st.integers(1, 7))
    order = draw(st.permutations(range(count)))
    services = {place for place in order[:-1] if draw(st.booleans())}
    lines = []
    for place in range(count):
        earlier = order[: order.index(place)]
        others = draw(st.lists(st.sampled_from(earlier), unique=True, max_size=3)) if earlier else []
        whens = [draw(st.sampled_from(WHENS[3:] if each in services else WHENS)) for each in others]
        after = ", ".join(
            f"{{name: t{each}, when: {when}}}" for each, when in zip(others, whens, strict=True)
        )
        more = f"service: {_yaml(place in services)}, hold: {_yaml(draw(st.booleans()))}"
        lines.append(
            f"- {{name: t{place}, command: ['true'], depends_on: [{after}], {more}, {READY}, {ONE}}}"
        )
    return plan_of("\n".join(lines))


def _yaml(truth: bool) -> str:
    return str(truth).lower()


def by_name(pieces: list[Piece]) -> dict[str, Piece]:
    return {piece.name: piece for piece in pieces}


@given(graphs())
def test_every_piece_comes_after_those_it_waits_for(plan: Plan) -> None:
    order = [piece.name for piece in pieces_of(plan)]
    for piece in pieces_of(plan):
        assert all(order.index(other) < order.index(piece.name) for _, other in piece.after)


@given(graphs())
def test_every_edge_holds_a_piece_back(plan: Plan) -> None:
    pieces = by_name(pieces_of(plan))
    for edge in plan.edges:
        piece, other = pieces[plan.unit(edge.unit).name], plan.unit(edge.after).name
        if edge.when == "ready":
            assert other in piece.needs_ready
            assert any(entry.split("|")[0] == piece.name for entry in pieces[other].ready_for)
        else:
            assert other in {name for _, name in piece.after}


@given(graphs())
def test_every_unit_is_one_piece_and_services_have_somebody_who_ends_them(plan: Plan) -> None:
    names = [piece.name for piece in pieces_of(plan)]
    services = [unit.name for unit in plan.units if unit.service]
    assert sorted(names) == sorted([unit.name for unit in plan.units] + ([CLOSER] if services else []))
    if services:
        closer = by_name(pieces_of(plan))[CLOSER]
        work = {("any", unit.name) for unit in plan.units if not unit.service}
        assert set(closer.after) >= work


def after(tasks: str, name: str) -> tuple[tuple[str, str], ...]:
    return by_name(pieces_of(plan_of(tasks)))[name].after


def test_what_the_manager_can_see_to_is_left_to_it() -> None:
    tasks = (
        f"- {{name: a, command: ['true'], {ONE}}}\n- {{name: b, command: ['true'], depends_on: [X], {ONE}}}"
    )
    ways = {"success": "ok", "failure": "not-ok", "any": "any", "started": "begun"}
    for when, native in ways.items():
        assert after(tasks.replace("X", f"{{name: a, when: {when}}}"), "b") == ((native, "a"),)


def test_where_policies_decide_the_outcome_the_script_looks_at_it() -> None:
    tasks = f"- {{name: a, command: ['true'], replicas: 4, max_failed: 1, {ONE}}}\n"
    plan = plan_of(tasks)
    assert not is_plain(plan.units[0])
    assert after(f"{tasks}- {{name: b, command: ['true'], depends_on: a, {ONE}}}", "b") == (("any", "a"),)


def test_no_task_can_be_taken_for_who_ends_the_services() -> None:
    name = CLOSER.lstrip("_")
    tasks = (
        f"- {{name: s, service: true, command: ['true'], {ONE}}}\n"
        f"- {{name: {name}, command: ['true'], {ONE}}}"
    )
    assert [piece.name for piece in pieces_of(plan_of(tasks))] == ["s", name, CLOSER]
    with pytest.raises(SpecError):
        plan_of(tasks.replace(name, CLOSER))


def test_cleanup_waits_for_all_that_is_not() -> None:
    tasks = (
        f"- {{name: a, command: ['true'], {ONE}}}\n- {{name: b, command: ['true'], {ONE}}}\n"
        f"- {{name: clean, command: ['true'], when: always, {ONE}}}"
    )
    assert after(tasks, "clean") == (("any", "a"), ("any", "b"))


def test_gates_and_holds_of_the_document_are_those_of_every_piece() -> None:
    tasks = f"- {{name: a, command: ['true'], gates: [own], {ONE}}}\n- {{name: b, command: ['true'], {ONE}}}"
    first, second = pieces_of(plan_of(tasks, head="gates: [all]\nhold: true\n"))
    assert (first.gates, second.gates) == (("all", "own"), ("all",))
    assert (first.hold, second.hold) == (True, True)
