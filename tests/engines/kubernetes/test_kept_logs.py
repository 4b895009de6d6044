"""Where output is kept that a cluster would forget."""

import pytest

from jobman.engines.kubernetes.kept_logs import LOGS, kept_logs
from tests.engines.kubernetes.objects_of import ID, container, task


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
    ],
)
def test_a_claim_or_a_folder_of_the_nodes_keeps_it(text, volume, mount, words):
    found = kept_logs(text)
    assert (found.volume, found.mount, found.words("abc")) == (volume, mount, words)


@pytest.mark.parametrize("text", ["", "logs", "/", "claim:", "claim:No", "claim:a/../../b", "/a/../b", "a:b"])
def test_what_is_no_place_is_refused_with_what_to_write(text):
    with pytest.raises(ValueError, match="claim:NAME"):
        kept_logs(text)


def test_an_object_store_is_not_mounted_by_a_cluster():
    with pytest.raises(ValueError, match="s3://"):
        kept_logs("s3://bucket/logs")


def test_every_copy_has_a_file_of_its_own_on_the_volume():
    found = container(task("replicas: 2"), keep_logs=kept_logs("claim:results/run"))
    (mount,) = [each for each in found["volumeMounts"] if each["mountPath"] == LOGS]
    assert mount["subPath"] == "run"
    script = found["command"][2]
    assert f"log={LOGS}/{ID}/a.$JOBMAN_REPLICA-$JOBMAN_RANK-$JOBMAN_ATTEMPT.log" in script
