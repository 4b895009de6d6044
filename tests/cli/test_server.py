"""`jobman server`: what it is told of the engine, before it begins."""

import hashlib
import sys

import pytest

from jobman.control import serving
from jobman.control.store.store import Store

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


def test_a_server_is_told_where_to_listen(jobman):
    answer = jobman("server")
    assert answer.code == 2
    assert "--listen" in answer.err


@pytest.mark.parametrize("option", ["--state", "--database"])
def test_a_new_token_is_printed_once_and_nothing_else_on_stdout(jobman, tmp_path, option):
    path = tmp_path / "served" / "jobman.db"
    store = Store.open(path)
    where = path.parent if option == "--state" else f"sqlite:///{path}\n"
    answer = jobman("server", option, where, "--new-token")
    (record,) = store.tokens()
    store.close()
    assert answer.code == 0
    assert record.hash == hashlib.sha256(answer.out.strip().encode()).hexdigest()
    assert (record.name, record.role) == ("admin", "admin")
    assert answer.err == "jobman: the token admin, of an administrator; it is not shown again\n"


def test_a_new_token_needs_a_service(jobman, tmp_path):
    answer = jobman("server", "--state", tmp_path / "nowhere", "--new-token")
    assert answer.code == 5
    assert "There is no store" in answer.err
    assert not (tmp_path / "nowhere").exists()
