"""The examples of the language, as its source has them or corrected: all run on a real Slurm or Flux."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from jobman.control.answers import Submission
from tests.conformance.flux import FluxSite, open_flux
from tests.conformance.slurm import SlurmSite, open_slurm
from tests.spec.test_seed_blocks import PLANS, SEEDS

pytestmark = pytest.mark.slow
Site = SlurmSite | FluxSite
_OPENINGS: dict[str, Callable[[Path], AbstractContextManager[Site]]] = {
    "slurm": open_slurm,
    "flux": open_flux,
}
_ENGINES = [pytest.param(name, marks=pytest.mark.component(name)) for name in _OPENINGS]
_FACTS = "facts: {io.archspec.cpu.target=zen3: amd64, hardware.gpu.available: amd64}"
_SETTINGS = {
    "slurm": f"slurm: {{{_FACTS}}}",
    "flux": f"flux: {{queue: main, memory_per_core: 8Gi, {_FACTS}}}",
}
"""What those machines are called that the examples ask for."""
_OTHERWISE = {
    "04-group-with-queue.fixed": [("count: 6", "count: 2"), ("count: 3", "count: 1")],
    "05-slot-indented.fixed": [("count: 5", "count: 4")],
    "17-service-in-group.fixed": [("sort -c", "sort")],
    "18-nested-groups.fixed": [('sort", "baskets.txt', 'seq", "3')],
}
"""The lab has two nodes with GPUs, and eight cores on each; two of them sort what is in no order, or gone."""
_PATIENCE = 180.0


@pytest.fixture
def site(engine: str, tmp_path: Path) -> Iterator[Site]:
    with _OPENINGS[engine](tmp_path) as found:
        yield found


@pytest.mark.parametrize(
    "engine", [pytest.param(name, marks=pytest.mark.component(name)) for name in _OPENINGS]
)
@pytest.mark.parametrize("name", PLANS)
def test_an_example_of_the_language_runs(engine: str, name: str, site: Site, tmp_path: Path) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "catalogue").mkdir()
    (folder / "catalogue" / "stars.txt").write_text("vega\n")
    (folder / "lenses.csv").write_text("lens,radius\n")
    text = (SEEDS / f"{name}.yaml").read_text(encoding="utf-8")
    for written, otherwise in [("/var/tmp", str(folder)), *_OTHERWISE.get(name, ())]:
        text = text.replace(written, otherwise)
    submission = Submission(
        document=text,
        file=f"{name}.yaml",
        settings=_SETTINGS[engine],
        cwd=str(folder),
        environment=site.environment,
    )
    (job,) = site.client.submit(submission).jobs
    done = site.client.wait(job.id, _PATIENCE)
    assert done.state == "succeeded", "\n".join(map(str, site.client.events(job.id)))
