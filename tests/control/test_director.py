"""The director: what is committed, what is answered, and what comes back after a restart."""

import asyncio

import pytest

from jobman.control.answers import Submission
from jobman.control.refusals import Refusal
from jobman.engines.memory import Play
from tests.control.playing import ONE, directing, ended, failing, play, submit, until

TASK = f"version: 1\nname: hello\ntasks:\n- {{name: greet, command: echo, {ONE}}}\n"


def kinds(director, job_id):
    return [event.kind for event in director.store.events(job_id)]


def test_a_job_runs_to_its_end(url):
    async def scene(director):
        job = await ended(director, await submit(director, TASK))
        assert (job.state, job.exit_code, job.name, job.owner) == ("succeeded", 0, "hello", "ada")
        assert job.counts == {"succeeded": 1}
        assert kinds(director, job.id) == ["submitted", "started", "succeeded", "job-succeeded"]
        assert director.is_idle()

    play(url, scene)


def test_a_failed_job_carries_the_exit_code_and_the_reason(url):
    async def scene(director):
        job = await ended(director, await submit(director, TASK))
        assert (job.state, job.exit_code, job.reason) == ("failed", 3, "greet.0: exit code 3")

    play(url, scene, failing("greet", code=3))


def test_retries_are_counted_and_told(url):
    async def scene(director):
        text = TASK.replace("command: echo", "command: echo, retries: 2")
        job = await ended(director, await submit(director, text))
        assert (job.state, job.counts) == ("succeeded", {"succeeded": 1, "retried": 2})
        assert kinds(director, job.id).count("retrying") == 2

    play(url, scene, failing("greet", until_attempt=2))


def test_the_same_key_gives_the_same_job_and_another_document_is_refused(url):
    async def scene(director):
        first = await submit(director, TASK, key="k")
        assert await submit(director, TASK, key="k") == first
        assert await submit(director, TASK, key="k", owner="bob") != first
        with pytest.raises(Refusal) as refused:
            await submit(director, TASK.replace("hello", "other"), key="k")
        assert refused.value.code == "key-reused"

    play(url, scene)


def test_a_wrong_document_is_refused_with_every_problem(url):
    async def scene(director):
        with pytest.raises(Refusal) as refused:
            await submit(director, TASK.replace("command", "comand").replace("name: hello", "nam: hello"))
        assert refused.value.code == "bad-document"
        assert {problem["code"] for problem in refused.value.problems} >= {"JS101"}
        assert director.store.counts() == {}

    play(url, scene)


def test_a_job_that_can_never_fit_is_refused_with_what_would_work(url):
    async def scene(director):
        text = "version: 1\ntasks:\n- {command: x, resources: {type: node, count: 3}}\n"
        with pytest.raises(Refusal) as refused:
            await submit(director, text)
        assert refused.value.code == "does-not-fit"
        assert "--virtual 3x1" in refused.value.advice
        job = await ended(director, await submit(director, text, virtual="3x1"))
        assert job.state == "succeeded"

    play(url, scene)


def test_output_that_a_service_keeps_by_itself_is_kept_nowhere_else(url):
    async def scene(director):
        with pytest.raises(Refusal) as refused:
            await submit(director, TASK, keep_logs="/data/logs")
        assert refused.value.code == "cannot"
        assert "--keep-logs" in refused.value.advice
        assert director.store.counts() == {}

    play(url, scene)


def test_several_documents_are_submitted_all_or_none(url):
    async def scene(director):
        with pytest.raises(Refusal):
            await submit(director, f"{TASK}---\nversion: 1\ntasks: []\n")
        assert director.store.counts() == {}
        await submit(director, f"{TASK}---\n{TASK}")
        assert sum(director.store.counts().values()) == 2

    play(url, scene)


def test_jobs_wait_for_resources_in_the_order_of_priority_and_submission(url):
    async def scene(director):
        documents = "---\n".join(f"{TASK}priority: {p}\n" for p in ("low", "high", "normal", "high"))
        answer = await director.submit(Submission(document=documents), "ada", None)
        low, first, normal, second = (job.id for job in answer.jobs)
        await ended(director, low)
        assert [job for job, _, _ in director.host.launched] == [first, second, normal, low]

    play(url, scene, lambda _order: Play(seconds=0.05), cores=1)


def test_hold_release_and_gates(url):
    async def scene(director):
        job_id = await submit(director, f"{TASK}gates: [data]\n", hold=True)
        assert [b.kind for b in (await director.why(job_id)).blockers] == ["hold", "gate"]
        with pytest.raises(Refusal):
            await director.open_gate(job_id, "nope", "ada")
        await director.open_gate(job_id, "data", "ada")
        assert (await director.why(job_id)).suggestion == f"jobman release {job_id}"
        await director.release(job_id, "ada")
        assert (await ended(director, job_id)).state == "succeeded"
        assert kinds(director, job_id)[:3] == ["submitted", "gate-opened", "released"]

    play(url, scene)


def test_a_cancelled_job_stops_what_runs(url):
    async def scene(director):
        job_id = await submit(director, TASK)
        await until(lambda: director.store.job(job_id).state == "running", director)
        await director.cancel(job_id, "ada")
        assert (await ended(director, job_id)).state == "cancelled"
        await director.cancel(job_id, "ada")  # as one does whose answer was lost
        with pytest.raises(Refusal):
            await director.hold(job_id, "ada")

    play(url, scene, lambda _order: Play(seconds=None))


def test_a_group_holds_its_nodes_while_its_tasks_run_inside(url):
    text = f"""
version: 1
tasks: [{{group: pair}}]
groups:
- name: pair
  resources: {{type: node, count: 1, with: [{{type: slot, count: 2, with: [{{type: core, count: 1}}]}}]}}
  tasks:
  - {{name: serve, service: true, command: x, {ONE}, ports: [web], checks: {{ready: {{tcp: web}}}}}}
  - {{name: ask, command: x, {ONE}, depends_on: [{{name: serve, when: ready}}]}}
"""

    async def scene(director):
        job = await ended(director, await submit(director, text))
        assert job.state == "succeeded"
        orders = director.host.launched
        assert [key for _, key, _ in orders] == ["pair.0/serve.0", "pair.0/ask.0"]
        assert director.store.allocations(job.id, open_only=True) == []
        assert director.nodes()[0].used["core"] == 0

    def script(order):
        return Play(seconds=None, ports={"web": 8080}) if order.unit.name == "serve" else Play()

    play(url, scene, script)


def test_everything_is_taken_up_after_a_restart(url):
    text = f"version: 1\nname: r\ntasks:\n- {{name: a, replicas: 4, command: x, {ONE}}}\n"

    async def scene():
        async with directing(url, lambda _order: Play(seconds=None), cores=2) as director:
            job_id = await submit(director, text)
            await until(lambda: len(director.host.launched) == 2, director)
            await until(lambda: director.store.job(job_id).counts.get("running") == 2, director)
        async with directing(url, cores=2) as director:
            job = await ended(director, job_id)
            assert (job.state, job.counts) == ("succeeded", {"succeeded": 4})
            attempts = director.store.attempts(job_id).items
            assert sorted((a.key, a.attempt) for a in attempts) == [(f"a.{n}", 1) for n in range(4)]

    asyncio.run(scene())


def test_only_what_failed_is_run_again(url):
    text = f"version: 1\nname: r\ntasks:\n- {{name: a, replicas: 3, command: x, {ONE}}}\n"
    broken = {"a.1"}

    async def scene(director):
        first = await ended(director, await submit(director, text))
        assert first.counts == {"succeeded": 2, "failed": 1}
        broken.clear()
        again = await ended(director, await submit(director, "", rerun_of=first.id, failed_only=True))
        assert (again.state, again.counts) == ("succeeded", {"succeeded": 3})
        assert [key for job, key, _ in director.host.launched if job == again.id] == ["a.1"]

    play(url, scene, lambda order: Play(exit_code=order.key in broken))


def test_a_deleted_job_is_gone(url):
    async def scene(director):
        job_id = await submit(director, TASK, hold=True)
        with pytest.raises(Refusal):
            await director.delete(job_id, "ada")
        await director.release(job_id, "ada")
        await ended(director, job_id)
        await director.delete(job_id, "ada")
        assert director.store.job(job_id) is None

    play(url, scene)


def test_time_limits_retries_and_windows_come_by_the_clock(url):
    async def scene(director):
        late = await submit(director, f"{TASK}hold: true\nstart: {{latest: +50ms}}\n")
        slow = await submit(director, TASK.replace("echo,", "echo, attributes: {duration: 50ms},"))
        job = await ended(director, late)
        assert (job.state, job.reason) == ("failed", "it did not start within its window")
        job = await ended(director, slow)
        assert (job.state, job.reason) == ("failed", "greet.0: its time was up")

    play(url, scene, lambda _order: Play(seconds=None))
