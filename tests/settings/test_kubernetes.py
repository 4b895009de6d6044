"""The cluster that is used without a service, as the settings say it."""

import pytest

from jobman.engines.kubernetes.site import of_site
from jobman.engines.kubernetes.target import TOPOLOGY
from jobman.settings import settings_from_text
from jobman.settings.kubernetes import Cluster, LogKeeper, cluster_of
from jobman.spec.problems import SpecError

TEXT = """
default_image: example.org/base:1
kubernetes:
  kubeconfig: ~/clusters/alps.conf
  context: alps
  namespace: team-blue
  gpu_resource: amd.com/gpu
  topology: {rack: example.org/rack, cell: example.org/cell}
  keep_logs: {image: example.org/rclone:1}
"""


def test_the_section_says_where_jobs_go_and_what_things_are_called_there():
    settings = settings_from_text(TEXT, "settings.yaml")
    assert cluster_of(settings.values) == Cluster(
        kubeconfig="~/clusters/alps.conf",
        context="alps",
        namespace="team-blue",
        gpu_resource="amd.com/gpu",
        topology={"rack": "example.org/rack", "cell": "example.org/cell"},
        keep_logs=LogKeeper(image="example.org/rclone:1", secret="jobman-logs"),
    )


def test_what_is_not_said_is_left_to_the_kubeconfig():
    assert cluster_of(settings_from_text("{}", "settings.yaml").values) == Cluster()


def test_everything_that_is_compiled_follows_the_settings():
    found = of_site(settings_from_text(TEXT, "settings.yaml"))
    assert (found["default_image"], found["gpu_resource"]) == ("example.org/base:1", "amd.com/gpu")
    assert found["topology"] == {**TOPOLOGY, "rack": "example.org/rack", "cell": "example.org/cell"}
    assert "gpu_resource" not in of_site(settings_from_text("{}", "settings.yaml"))


@pytest.mark.parametrize(
    ("code", "line"),
    [
        ("JS101", "name_space: a"),
        ("JS201", "namespace: Not-A-Name"),
        ("JS201", "kubeconfig: relative/file"),
        ("JS201", "gpu_resource: gpu"),
        ("JS201", "topology: {rack: '-'}"),
        ("JS201", "keep_logs: {secret: Not-A-Name}"),
        ("JS101", "keep_logs: {key: a}"),
    ],
)
def test_what_a_cluster_would_not_take_is_told_with_its_place(code, line):
    with pytest.raises(SpecError) as wrong:
        settings_from_text(f"kubernetes:\n  {line}\n", "settings.yaml")
    assert [problem.code for problem in wrong.value.problems] == [code]
