"""Jobs from Python: on a rehearsed service, and on the real one."""

import asyncio

import pytest

import jobman
from jobman import Play, Rehearsal

ONE = "resources: {type: slot, count: 1, with: [{type: core, count: 1}]}"
HELLO = f"version: 1\nname: hello\ntasks:\n- {{name: greet, command: [echo, hello], {ONE}}}\n"


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("JOBMAN_STATE", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "hello.yaml"
    path.write_text(HELLO)
    return path


def greeting(order):
    return Play(output=f"hello from {order.key}\n", exit_code=0 if order.attempt > 1 else 7)


def test_a_job_is_submitted_waited_for_and_read(file):
    with Rehearsal(greeting) as rehearsal:
        job = rehearsal.submit(file)
        end = job.wait(30)
        assert (end.state, end.exit_code, job.state, job.is_over) == ("failed", 7, "failed", True)
        assert job.output() == "hello from greet.0\n"
        assert next(event.kind for event in job.events()) == "submitted"
        assert [(each.replica, each.exit_code) for each in job.attempts()] == [("greet.0", 7)]
        with pytest.raises(jobman.JobFailed, match=r"greet\.0: exit code 7"):
            job.wait(check=True)


def test_a_spec_and_a_plan_can_be_submitted_too(file):
    with Rehearsal() as rehearsal:
        spec = jobman.load(file)
        for document in (spec, spec.plan(), str(file)):
            assert rehearsal.submit(document).wait(30).state == "succeeded"
        assert rehearsal.submit(spec.plan(), name="other").name == "other"
        assert len(rehearsal.launched) == 4


def test_a_wrong_document_raises_with_its_problems(file):
    file.write_text(HELLO.replace("command", "comand"))
    with Rehearsal() as rehearsal, pytest.raises(jobman.Refused) as refused:
        rehearsal.submit(file)
    assert refused.value.failure.problems[0]["code"] == "JS101"


def test_parameters_holds_gates_and_reruns(file):
    file.write_text(
        HELLO.replace("version: 1\n", "version: 1\nparameters: {n: 1}\ngates: [go]\n").replace(
            "command:", "replicas: '{{n}}', command:"
        )
    )
    broken = {"greet.1"}
    with Rehearsal(lambda order: Play(exit_code=order.key in broken)) as rehearsal:
        job = rehearsal.submit(file, parameters={"n": 3}, hold=True)
        assert {blocker.kind for blocker in job.why().blockers} == {"hold", "gate"}
        job.release()
        job.open_gate("go")
        assert job.wait(30).state == "failed"
        broken.clear()
        again = job.rerun(failed_only=True)
        again.open_gate("go")
        assert again.wait(30).counts == {"succeeded": 3}
        assert [key for id, key, _ in rehearsal.launched if id == again.id] == ["greet.1"]
        job.delete()
        with pytest.raises(jobman.Refused):
            job.details()


LIMITED = HELLO.replace("tasks:", "attributes: {duration: 1h}\ntasks:")


def test_when_a_job_starts_is_known_at_once_and_can_be_asked_for_again(file):
    file.write_text(LIMITED)
    with Rehearsal(lambda order: Play(seconds=None), cores=1) as rehearsal:
        first = rehearsal.submit(file)
        assert first.promised is not None
        assert first.promised.starts_now
        second = rehearsal.submit(file)
        assert second.promised is not None
        assert (second.promised.job, second.promised.position) == (second.id, 1)
        estimate = second.estimate()
        assert estimate is not None
        assert estimate.guaranteed_by is not None
        assert estimate.guaranteed_by == second.promised.guaranteed_by
        assert estimate.guaranteed_by > second.details().submitted_at + 3600
        first.cancel()


def test_what_would_be_if_is_answered_without_submitting(file):
    file.write_text(LIMITED)
    with Rehearsal(lambda order: Play(seconds=None), cores=1) as rehearsal:
        (now,) = jobman.what_if(file, client=rehearsal.client)
        assert now.starts_now
        rehearsal.submit(file)
        (then,) = jobman.what_if(jobman.load(file), client=rehearsal.client)
        assert (then.starts_now, then.position) == (False, 1)
        assert then.guaranteed_by is not None
        assert len(list(rehearsal.client.jobs())) == 1


def test_a_job_that_waits_for_somebody_has_no_estimate(file):
    with Rehearsal() as rehearsal:
        job = rehearsal.submit(file, hold=True)
        assert (job.promised, job.estimate()) == (None, None)


def test_everything_can_be_awaited(file):
    async def scene(rehearsal):
        job = await jobman.submit_async(file, client=rehearsal.client)
        end = await job.wait(30)
        assert end.state == "failed"
        assert [line.text async for line in job.logs()] == ["hello from greet.0"]
        assert [event.kind async for event in job.events()][-1] == "job-failed"

    with Rehearsal(greeting) as rehearsal:
        asyncio.run(scene(rehearsal))


def test_a_job_runs_on_the_users_own_service(file):
    job = jobman.submit(file)
    try:
        assert job.wait(60).state == "succeeded"
        assert job.output() == "hello\n"
        assert jobman.find(job.id[:6]).name == "hello"
    finally:
        jobman.Client.usual().stop(force=True)
