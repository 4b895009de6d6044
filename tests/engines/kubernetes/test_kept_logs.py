"""Where output is kept that a cluster would forget."""

import pytest

from jobman.engines.kubernetes.kept_logs import END, LOGS, VOLUME, kept_logs
from jobman.settings.kubernetes import LogKeeper
from tests.engines.kubernetes.objects_of import ID, container, pod, task


@pytest.mark.parametrize(
    ("text", "volume", "mount", "words"),
    [
        (
            "claim:results",
            {"persistentVolumeClaim": {"claimName": "results"}},
            {},
            "the folder abc of the claim results",
        ),
        (
            "claim:results/a/b/",
            {"persistentVolumeClaim": {"claimName": "results"}},
            {"subPath": "a/b"},
            "the folder a/b/abc of the claim results",
        ),
        (
            "/data/logs",
            {"hostPath": {"path": "/data/logs", "type": "DirectoryOrCreate"}},
            {},
            "/data/logs/abc on its nodes",
        ),
        ("s3://results", {"emptyDir": {}}, {}, "s3://results/abc"),
        ("s3://results/a/b/", {"emptyDir": {}}, {}, "s3://results/a/b/abc"),
    ],
)
def test_a_claim_a_bucket_or_a_folder_of_the_nodes_keeps_it(text, volume, mount, words):
    found = kept_logs(text)
    assert (found.volume, found.mount, found.words("abc")) == (volume, mount, words)


@pytest.mark.parametrize(
    "text",
    [
        *("", "logs", "/", "claim:", "claim:No", "claim:a/../../b", "/a/../b", "a:b"),
        *("s3://", "s3:///a", "s3://No/a", "s3://results/../a", "s3://results/a\nb", "gs://results"),
    ],
)
def test_what_is_no_place_is_refused_with_what_to_write(text):
    with pytest.raises(ValueError, match="claim:NAME"):
        kept_logs(text)


def test_what_is_kept_in_a_store_is_carried_there_by_a_container_beside_the_command():
    text = task("security: {uid: 7, privileged: true, capabilities: {add: [SYS_PTRACE], drop: [CHOWN]}}")
    spec = pod(text, keep_logs=kept_logs("s3://results/run"), keeper=LogKeeper(secret="keys"))
    (main,), (keeper,) = spec["containers"], spec["initContainers"]
    assert (keeper["image"], keeper["restartPolicy"]) == ("rclone/rclone", "Always")
    assert keeper["command"][-3:] == [f"{LOGS}/{ID}", f":s3:results/run/{ID}", END]
    assert keeper["volumeMounts"] == [{"name": VOLUME, "mountPath": LOGS}]
    assert keeper["envFrom"] == [{"secretRef": {"name": "keys"}}]
    assert "envFrom" not in main
    assert keeper["securityContext"] == {
        "runAsUser": 7,
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["CHOWN"]},
    }
    assert END in main["command"][2]


def test_nobody_is_waited_for_where_output_is_kept_on_a_volume():
    spec = pod(task(), keep_logs=kept_logs("claim:results"))
    assert "initContainers" not in spec
    assert END not in spec["containers"][0]["command"][2]


def test_who_carries_it_comes_from_where_the_site_has_its_images():
    spec = pod(task(), keep_logs=kept_logs("s3://results"), image_prefix="registry.example.org/")
    assert spec["initContainers"][0]["image"] == "registry.example.org/rclone/rclone"


def test_every_copy_has_a_file_of_its_own_on_the_volume():
    found = container(task("replicas: 2"), keep_logs=kept_logs("claim:results/run"))
    (mount,) = [each for each in found["volumeMounts"] if each["mountPath"] == LOGS]
    assert mount["subPath"] == "run"
    script = found["command"][2]
    assert f"log={LOGS}/{ID}/a.$JOBMAN_REPLICA-$JOBMAN_RANK-$JOBMAN_ATTEMPT.log" in script
