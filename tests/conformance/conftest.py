"""The `engine` that every scenario asks for, once for each engine there is."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from jobman.client import Refused
from tests.conformance.differences import Difference, difference
from tests.conformance.engines import ENGINES, Engine, Site
from tests.conformance.promises import RefusedAsPromised


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "engine" in metafunc.fixturenames:
        needs = {
            name: [pytest.mark.component(opening.component)] if opening.component else []
            for name, opening in ENGINES.items()
        }
        # Each scenario starts real processes: all of them together are too many for the inner loop.
        engines = [pytest.param(name, marks=[pytest.mark.slow, *marks]) for name, marks in needs.items()]
        metafunc.parametrize("engine", engines, indirect=True)


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    """A scenario whose features an engine refuses ends with the refusal: it has been checked by then."""
    known = _difference(pyfuncitem)
    try:
        done = yield
    except RefusedAsPromised as refused:
        pyfuncitem.user_properties.append(("refused", str(refused)))
        return True
    except Refused as refusal:
        if known is None or not known.says:
            raise
        _is_refused_as_known(refusal, known.says)
        pyfuncitem.user_properties.append(("refused", known.says))
        return True
    assert known is None, f"this is not refused any more: {known}"
    return done


def _is_refused_as_known(refusal: Refused, words: str) -> None:
    assert (refusal.code, refusal.exit_code) == ("cannot", 4)
    assert words in str(refusal)


def _difference(item: pytest.Function) -> Difference | None:
    """Why a scenario comes out in another way on its engine."""
    engine = item.callspec.params.get("engine") if hasattr(item, "callspec") else None
    if not isinstance(engine, str):
        return None
    rest = item.callspec.id.removeprefix(engine).strip("-")
    return difference(engine, item.originalname, f"{item.originalname}[{rest}]")


@pytest.fixture(scope="session")
def site_of(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Site]]:
    """Opens each engine for the first scenario that asks for it, and closes all at the end."""
    sites: dict[str, Site] = {}
    with ExitStack() as stack:

        def open_once(name: str) -> Site:
            if name not in sites:
                sites[name] = stack.enter_context(ENGINES[name].open(tmp_path_factory.mktemp(name)))
            return sites[name]

        yield open_once


@pytest.fixture
def engine(
    request: pytest.FixtureRequest, site_of: Callable[[str], Site], tmp_path: Path
) -> Iterator[Engine]:
    """An engine in a folder of the scenario's own. Whatever the scenario did, nothing may be left of it."""
    known = _difference(request.node)
    if known is not None and known.why:
        pytest.skip(f"{request.param}: {known.why}")
    bound = site_of(request.param).bind(tmp_path)
    yield bound
    left = bound.leave()
    assert not left, "; ".join(left)
