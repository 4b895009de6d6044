"""`jobman server`: what it is told of the engine, before it begins."""

import sys

import pytest

from jobman.control import serving

WRONG = {
    "unknown engine": (("--engine", "moon"), "there is no engine 'moon'"),
    "namespace of a machine": (("--namespace", "jobs"), "only a cluster has namespaces"),
    "no namespace": (("--engine", "kubernetes", "--namespace", "The Lab"), "no name of a namespace"),
}


@pytest.mark.parametrize(("options", "words"), WRONG.values(), ids=list(WRONG))
def test_wrong_options_are_told(jobman, options, words):
    answer = jobman("server", "--listen", "localhost:0", *options)
    assert answer.code == 2
    assert words in answer.err


def test_what_is_missing_for_a_cluster_is_named(jobman, monkeypatch):
    monkeypatch.setitem(sys.modules, "httpx", None)
    answer = jobman("server", "--listen", "localhost:0", "--engine", "kubernetes")
    assert answer.code == 4
    assert "pip install 'jobman[kubernetes]'" in answer.err


def test_a_service_is_given_its_cluster(jobman, monkeypatch, tmp_path):
    given = []

    def serve(options):
        given.append(options)
        return 0

    monkeypatch.setattr(serving, "serve", serve)
    options = ("--engine", "kubernetes", "--namespace", "jobs", "--kubeconfig", "k.conf", "--context", "lab")
    assert jobman("server", "--listen", "localhost:0", "--state", str(tmp_path), *options).code == 0
    (found,) = given
    assert (found.engine, found.namespace, str(found.kubeconfig), found.context) == (
        "kubernetes",
        "jobs",
        "k.conf",
        "lab",
    )
