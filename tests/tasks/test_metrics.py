"""What a broker tells Prometheus: by the names of its page, and all that the dashboard asks for."""

from __future__ import annotations

import asyncio
import json
import re
from importlib.resources import files
from pathlib import Path

import pytest

from jobman.tasks.grid import Grid
from jobman.tasks.wire import Answer, Connection
from tests.docs.pages import code_in, rows
from tests.tasks.site import Site

SAMPLE = re.compile(r'(jobman_\w+?)(_bucket|_sum|_count)?(\{(\w+="[^"]*",?)*\})? -?[\d.e+-]+(inf)?')


def ask(site: Site, token: str = "") -> Answer:
    async def scenario() -> Answer:
        headers = {"authorization": f"Bearer {token}"} if token else {}
        connection = Connection(Path(site.url), headers=headers)
        try:
            return await connection.ask("GET", "/metrics")
        finally:
            connection.close()

    return asyncio.run(scenario())


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Of a broker that has executed something."""
    with Site(tmp_path_factory.mktemp("site")) as site, Grid(site.url) as grid:
        assert list(grid.map("square", range(20), version="2")) == [b"%d" % n**2 for n in range(20)]
        return ask(site).body.decode()


def kinds(text: str) -> dict[str, str]:
    return dict(re.findall(r"^# TYPE (\w+) (\w+)$", text, re.M))


def test_every_line_is_of_a_metric_that_was_announced(text: str) -> None:
    samples = [line for line in text.splitlines() if not line.startswith("#")]
    found = [SAMPLE.fullmatch(line) for line in samples]
    assert [line for line, each in zip(samples, found, strict=True) if each is None] == []
    assert {each[1] for each in found if each} <= kinds(text).keys()
    assert 'jobman_tasks_ended_total{tenant="default",image="squares",status="completed"} 20' in samples


def test_the_page_has_them_all(text: str) -> None:
    shown = [
        (code_in(name)[0], kind) for name, kind, _, _ in rows("tasks-on-kubernetes.md", "<!-- metrics -->")
    ]
    assert sorted(shown) == sorted(kinds(text).items())


def test_the_dashboard_asks_only_for_what_is_told(text: str) -> None:
    board = (files("jobman.tasks") / "dashboards" / "tasks.json").read_text(encoding="utf-8")
    asked = {
        name
        for panel in json.loads(board)["panels"]
        for target in panel["targets"]
        for name in re.findall(r"jobman_\w+", target["expr"])
    }
    assert len(asked) > 10
    whole = kinds(text)
    histograms = {f"{name}_{part}" for name in whole for part in ("bucket", "sum", "count")}
    assert asked - whole.keys() - histograms == set()


def test_only_an_operator_is_told_what_all_tenants_do(tmp_path: Path) -> None:
    with Site(tmp_path, tokens={"of-a-desk": "desk", "of-all": "operator"}) as site:
        assert [ask(site, token).status for token in ("", "of-a-desk", "of-all")] == [401, 403, 200]
