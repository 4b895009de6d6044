"""What a document becomes for a manager of batch jobs: scripts, and one that submits them."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from jobman.cli.files import write_files
from jobman.cli.render_refusals import refuse, told_apart, unable
from jobman.cli.state import State, emit, say

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from jobman.api import JobSpec
    from jobman.client.batch_submission import Prepared
    from jobman.control.answers import Submission
    from jobman.engines.base import Refused
    from jobman.engines.scripts.delegate import Delegate
    from jobman.plan.model import Plan

_SUBMIT = "submit.sh"
_ADVICE = "name a folder that is empty, or the one where it was rendered before"


class Rendered(NamedTuple):
    """A job as files, each by its name below a folder."""

    job: Prepared
    submit: str

    @property
    def title(self) -> str:
        return f"{self.job.about.name}-{self.job.about.id}"

    @property
    def texts(self) -> dict[str, str]:
        """What people read."""
        from jobman.engines.scripts.delegate import texts_of

        scripts = {f"scripts/{name}.sh": text for name, text in texts_of(self.job.scripts).items()}
        return {**scripts, _SUBMIT: self.submit}

    @property
    def about(self) -> str:
        """What jobman will know the job by; when it is submitted, the script fills in."""
        import msgspec

        return msgspec.json.encode(msgspec.structs.replace(self.job.about, submitted_at=0.0)).decode() + "\n"


def render_scripts(
    specs: Sequence[JobSpec],
    file: str,
    state: State,
    form: str,
    folder: Path | None,
    *,
    engine: str,
    no_container: bool,
) -> None:
    """Print the scripts of all documents, or write them to files."""
    from jobman.client.batch_opening import DELEGATES

    manager = DELEGATES[engine]()
    found = _rendered(specs, file, state, form, manager, no_container=no_container)
    if folder is not None:
        _write(found, folder, form)
    elif form == "table":
        sys.stdout.write("".join(_printed(found)))
    else:
        answers = [_as_data(each) for each in found]
        emit(answers[0] if len(answers) == 1 else answers, form)


def _rendered(
    specs: Sequence[JobSpec], file: str, state: State, form: str, manager: Delegate, *, no_container: bool
) -> list[Rendered]:
    site = manager.site(state.settings(form).values)
    plans = [spec.plan() for spec in specs]
    refused: list[Refused] = []
    for plan in plans:
        own = manager.refusals(plan, site, no_container=no_container)
        refused += own if len(plans) == 1 else told_apart(own, plan)
    if refused:
        refuse(refused, manager.name, form)
    submission = _submission(specs[0], file, no_container=no_container)
    found = [
        _prepared(plan, number, submission, manager, site, form)
        for plan, number in zip(plans, _numbers(plans), strict=True)
    ]
    for note in dict.fromkeys(note for job in found for note in job.notes):
        say(note)
    return [Rendered(job, manager.by_hand(job.job, job.scripts)) for job in found]


def _submission(spec: JobSpec, file: str, *, no_container: bool) -> Submission:
    """What `jobman submit` would send from here."""
    from jobman.control.answers import Submission

    return Submission(
        document=spec.source.text if spec.source is not None else "",
        file="<stdin>" if file == "-" else file,
        cwd=str(Path.cwd()),
        no_container=no_container,
    )


def _numbers(plans: Sequence[Plan]) -> Iterator[int]:
    """A job that stands in a file twice is two jobs."""
    seen: Counter[str] = Counter()
    for plan in plans:
        yield seen[plan.digest]
        seen[plan.digest] += 1


def _prepared(
    plan: Plan, number: int, submission: Submission, manager: Delegate, site: Any, form: str
) -> Prepared:
    """A job with an id of its plan and its folder, so that the same is always rendered the same."""
    from jobman.client.batch_opening import root_of
    from jobman.client.batch_submission import Submitting
    from jobman.client.direct_submission import job_id
    from jobman.control.places import find_places
    from jobman.control.refusals import Refusal
    from jobman.engines.scripts.alternatives import leftmost
    from jobman.engines.scripts.commands import NotThere
    from jobman.engines.scripts.registry import Registry
    from jobman.engines.slurm.engine import user

    root, owner = root_of(site, manager.name), user()
    registry = Registry(find_places().state / "batch.sqlite", manager.name, root)
    id_ = job_id(owner, f"{plan.digest} {submission.cwd}", number)
    submitting = Submitting(manager, registry, root, owner)
    try:
        try:
            return submitting.prepare_as(submission, plan, id_, site)
        except NotThere:
            say(f"{manager.title} cannot be asked from here: of alternatives the leftmost is rendered")
            return submitting.prepare_as(submission, leftmost(plan), id_, site)
    except Refusal as error:
        unable(error.message, error.advice, form)


def _printed(found: Sequence[Rendered]) -> Iterator[str]:
    """Each script below its name."""
    for each in found:
        for name, text in each.texts.items():
            place = name if len(found) == 1 else f"{each.title}/{name}"
            yield f"# {'=' * 8} {place} {'=' * max(8, 98 - len(place))}\n{text}\n"


def _as_data(each: Rendered) -> dict[str, Any]:
    from jobman.engines.scripts.by_hand import is_held

    return {
        "id": each.job.about.id,
        "name": each.job.about.name,
        "folder": each.job.job.folder,
        "scripts": [
            {
                "name": script.name,
                "after": [{"when": when, "name": name} for when, name in script.piece.after],
                "held": is_held(script.piece),
                "text": script.text,
                "beside": dict(script.beside),
            }
            for script in each.job.scripts
        ],
        "submit": each.submit,
    }


def _write(found: Sequence[Rendered], folder: Path, form: str) -> None:
    """One job lies in the folder itself, each of several in one of its own below it."""
    texts: dict[str, str] = {}
    for each in found:
        place = "" if len(found) == 1 else f"{each.title}/"
        texts |= {f"{place}{name}": text for name, text in each.texts.items()}
        texts[f"{place}about.json"] = each.about
    programs = [name for name in texts if name.endswith(".sh")]
    write_files(texts, folder, form, _ADVICE, programs=programs)
