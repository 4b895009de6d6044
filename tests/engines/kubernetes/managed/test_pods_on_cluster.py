"""What copies find on a real node: memory, folders, variables and names as they were promised."""

import pytest

from tests.engines.kubernetes.cluster import a_namespace, kubectl, on_a_real_cluster
from tests.engines.kubernetes.managed.standing import Standing
from tests.engines.kubernetes.objects_of import task

pytestmark = [pytest.mark.slow, on_a_real_cluster]


@pytest.fixture(scope="module")
def standing():
    with a_namespace() as name:
        yield Standing(name)


def shell(script, more="", **given):
    return task(more, command=f"[sh, -c, '{script}']", **given)


def test_shared_memory_is_of_the_chosen_size(standing):
    volume = "volumes: [{name: shm, kind: memory, size: 8Mi, to: /dev/shm}]"
    made = standing.start(shell("df -k /dev/shm | tail -1", volume))
    assert standing.output(made).split()[1] == str(8 * 1024)


def test_shared_memory_is_as_large_as_the_memory_of_the_copy_where_nothing_is_said(standing):
    made = standing.start(shell("df -k /dev/shm | tail -1"))
    assert standing.output(made).split()[1] == str(32 * 1024)


def test_a_copy_runs_where_it_was_told_to_with_its_files_and_variables(standing):
    kubectl("create", "secret", "generic", "door", "-n", standing.namespace, "--from-literal=key=sesame")
    made = standing.start(
        shell(
            'pwd; cat note; echo "$WHO:$OPEN"; ls /var/run/secrets 2>&1',
            "attributes: {cwd: /srv, environment: {WHO: ada}}, "
            "secrets: [{name: door, key: key, variable: OPEN}], "
            "steps: [{name: write, path: note, content: hello\\n}]".replace("hello\\n", '"hello\\n"'),
        )
    )
    folder, note, said, token = standing.output(made).splitlines()
    assert (folder, note, said) == ("/srv", "hello", "ada:sesame")
    assert "No such file" in token


def test_a_copy_stands_on_its_planned_node_under_its_own_name(standing):
    shape = "{type: node, count: 2, with: [{type: memory, count: 16Mi}]}"
    made = standing.start(shell("hostname; hostname -f; echo $JOBMAN_RANK/$JOBMAN_SIZE", shape=shape))
    for copy in range(2):
        short, full, rank = standing.output(made, copy).splitlines()
        assert short == f"a-0-{copy}"
        assert full == f"a-0-{copy}.jobman-{made.job}.{standing.namespace}.svc.cluster.local"
        assert rank == f"{copy}/2"
    planned = [slot.node for slot in made.allocation.slots]
    assert [pod["spec"]["nodeName"] for pod in standing.pods(made)] == planned
    assert len(set(planned)) == 2


def test_a_copy_that_is_alone_reaches_itself_by_the_name_it_is_told(standing):
    knock = "nc -w 1 $JOBMAN_NODELIST 80 </dev/null 2>/dev/null"
    script = f"nc -ll -p 80 -e cat & until {knock}; do sleep 0.2; done; echo here"
    made = standing.start(shell(script), alone=True)
    assert standing.output(made) == "here\n"
