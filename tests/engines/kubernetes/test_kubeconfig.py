"""kubeconfig files: read as kubectl reads them, and explained where they are wrong."""

import base64
import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from jobman.engines.kubernetes.access import Login, Material
from jobman.engines.kubernetes.errors import ConfigError, LoginError
from jobman.engines.kubernetes.in_cluster import in_cluster
from jobman.engines.kubernetes.kubeconfig import contexts, load
from tests.engines.kubernetes.cluster import kubectl_json, on_a_real_cluster

SERVER = "https://one.example:6443"


def write(
    file: Path,
    *,
    cluster: dict[str, Any] | None = None,
    user: dict[str, Any] | None = None,
    context: dict[str, Any] | None = None,
    name: str = "one",
    current: str | None = "one",
) -> Path:
    """A file with one of each, all of the same name."""
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": {"server": SERVER, **(cluster or {})}}],
        "users": [{"name": name, "user": user or {}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name, **(context or {})}}],
    }
    if current is not None:
        content["current-context"] = current
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(yaml.safe_dump(content), encoding="utf-8")
    return file


def refusal(*args, **given) -> ConfigError:
    with pytest.raises(ConfigError) as raised:
        load(*args, **given)
    return raised.value


# -- one file ------------------------------------------------------------------------------------------------


def test_the_current_context_leads_to_its_cluster(tmp_path):
    access = load(write(tmp_path / "config", user={"token": "secret"}, context={"namespace": "mine"}))
    assert (access.server, access.namespace, access.context) == (SERVER, "mine", "one")
    assert access.login.current_token() == "secret"


def test_without_a_namespace_it_is_the_default_one(tmp_path):
    assert load(write(tmp_path / "config")).namespace == "default"


def test_a_slash_at_the_end_of_a_server_does_not_matter_but_its_path_does(tmp_path):
    file = write(tmp_path / "config", cluster={"server": "https://one.example/k8s/clusters/c-1/"})
    assert load(file).server == "https://one.example/k8s/clusters/c-1"


@pytest.mark.parametrize(
    ("cluster", "expected"),
    [({}, "http://one.example:80"), ({"insecure-skip-tls-verify": True}, "https://one.example:80")],
)
def test_a_server_without_a_scheme_speaks_tls_where_something_says_so(tmp_path, cluster, expected):
    file = write(tmp_path / "config", cluster={"server": "one.example:80", **cluster})
    assert load(file).server == expected


def test_relative_paths_are_meant_from_the_folder_of_the_file(tmp_path):
    file = write(
        tmp_path / "here" / "config",
        cluster={"certificate-authority": "certs/ca.crt"},
        user={"client-certificate": "../me.crt", "client-key": "/etc/me.key"},
    )
    access = load(file)
    assert access.authority.file == str(tmp_path / "here" / "certs" / "ca.crt")
    assert access.login.certificate.file == str(tmp_path / "me.crt")
    assert access.login.key.file == "/etc/me.key"


def test_a_plugin_with_a_folder_in_its_name_is_meant_from_there_and_one_without_is_searched(tmp_path):
    def plugin(command: str) -> dict[str, Any]:
        return {
            "exec": {
                "command": command,
                "apiVersion": "client.authentication.k8s.io/v1",
                "interactiveMode": "Never",
            }
        }

    beside = load(write(tmp_path / "config", user=plugin("bin/login"))).login.plugin
    searched = load(write(tmp_path / "config", user=plugin("login"))).login.plugin
    assert beside is not None
    assert searched is not None
    assert (beside.command, searched.command) == (str(tmp_path / "bin" / "login"), "login")


def test_a_date_as_a_token_is_a_text(tmp_path):
    file = write(tmp_path / "config")
    file.write_text(
        file.read_text().replace("user: {}", "user: {token: 2026-01-01}"),
        encoding="utf-8",
    )
    assert load(file).login.token == "2026-01-01"


def test_acting_as_somebody_else_becomes_headers(tmp_path):
    user = {
        "as": "eve",
        "as-uid": "7",
        "as-groups": ["a", "b"],
        "as-user-extra": {"a/b": ["x"]},
    }
    assert load(write(tmp_path / "config", user=user)).login.headers == (
        ("Impersonate-User", "eve"),
        ("Impersonate-Uid", "7"),
        ("Impersonate-Group", "a"),
        ("Impersonate-Group", "b"),
        ("Impersonate-Extra-a%2Fb", "x"),
    )


def test_a_token_of_an_oidc_provider_is_used(tmp_path):
    user = {"auth-provider": {"name": "oidc", "config": {"id-token": "abc"}}}
    assert load(write(tmp_path / "config", user=user)).login.token == "abc"


def test_nothing_secret_is_shown_by_what_was_read(tmp_path):
    user = {
        "token": "tok-hidden",
        "client-certificate-data": base64.b64encode(b"crt-hidden").decode(),
        "client-key-data": base64.b64encode(b"key-hidden").decode(),
    }
    shown = repr(load(write(tmp_path / "config", cluster={"proxy-url": "http://me:pw-hidden@p"}, user=user)))
    assert "-hidden" not in shown
    assert base64.b64encode(b"key-hidden").decode() not in shown


# -- several files -------------------------------------------------------------------------------------------


def test_the_first_file_that_names_something_is_right_about_all_of_it(tmp_path):
    first = write(tmp_path / "a", current=None)
    second = write(
        tmp_path / "b", cluster={"server": "https://other:1", "tls-server-name": "x"}, user={"token": "t"}
    )
    access = load(environment={"KUBECONFIG": f"{first}{os.pathsep}{second}"})
    assert (access.server, access.tls_server_name, access.login.token) == (SERVER, "", "")
    assert access.context == "one"  # which only the second file says is current


def test_files_that_are_not_there_are_passed_over(tmp_path):
    there = write(tmp_path / "there")
    named = os.pathsep.join([str(tmp_path / "missing"), "", str(there), str(there)])
    assert load(environment={"KUBECONFIG": named}).source == str(there)


def test_without_kubeconfig_the_one_in_the_home_folder_is_read(tmp_path):
    write(tmp_path / ".kube" / "config")
    assert load(environment={"HOME": str(tmp_path)}).server == SERVER


def test_another_context_can_be_chosen_and_all_can_be_listed(tmp_path):
    first, second = write(tmp_path / "a"), write(tmp_path / "b", name="two", context={"namespace": "deux"})
    environment = {"KUBECONFIG": f"{first}{os.pathsep}{second}"}
    assert load(context="two", environment=environment).namespace == "deux"
    assert contexts(environment=environment) == ("one", ["one", "two"])


# -- kubectl's word ------------------------------------------------------------------------------------------


@on_a_real_cluster
@pytest.mark.parametrize("context", [None, "one", "two"])
def test_kubectl_reads_the_same_files_in_the_same_way(tmp_path, context):
    for name in ("ca.crt", "me.crt", "me.key"):
        (tmp_path / "b" / "certs").mkdir(parents=True, exist_ok=True)
        (tmp_path / "b" / "certs" / name).write_text(f"-- {name} --")
    first = write(
        tmp_path / "a" / "config",
        cluster={
            "certificate-authority-data": base64.b64encode(b"inline").decode(),
            "proxy-url": "http://proxy:3128",
            "tls-server-name": "inside",
        },
        user={"username": "ada", "password": "pass"},
        current=None,
    )
    second = write(
        tmp_path / "b" / "config",
        name="two",
        cluster={"server": "https://two.example", "certificate-authority": "certs/ca.crt"},
        user={"client-certificate": "certs/me.crt", "client-key": "../b/certs/me.key", "as": "eve"},
        context={"namespace": "deux"},
        current="two",
    )
    third = write(tmp_path / "c", cluster={"server": "https://never"}, user={"token": "never"})
    environment = {"KUBECONFIG": os.pathsep.join(map(str, [first, tmp_path / "missing", second, third]))}
    words = ["config", "view", "--raw", "--minify", "--flatten"]
    told = kubectl_json(*words, *([f"--context={context}"] if context else []), **environment)
    cluster, user = told["clusters"][0]["cluster"], told["users"][0]["user"]

    access = load(context=context, environment=environment)

    assert access.context == told["current-context"]
    assert access.namespace == told["contexts"][0]["context"].get("namespace", "default")
    assert access.server == cluster["server"]
    assert access.tls_server_name == cluster.get("tls-server-name", "")
    assert access.proxy == cluster.get("proxy-url", "")
    assert access.authority.read("") == base64.b64decode(cluster["certificate-authority-data"])
    assert access.login.username == user.get("username", "")
    assert access.login.password == user.get("password", "")
    assert dict(access.login.headers).get("Impersonate-User") == user.get("as")
    if access.login.certificate:
        assert access.login.certificate.read("") == base64.b64decode(user["client-certificate-data"])
        assert access.login.key.read("") == base64.b64decode(user["client-key-data"])
    else:
        assert "client-certificate-data" not in user


def test_contexts_of_the_same_cluster_name_more_namespaces(tmp_path):
    file = write(tmp_path / "config", context={"namespace": "mine"})
    data = yaml.safe_load(file.read_text())
    others = [("shared", "one"), ("elsewhere", "two"), ("", "one")]
    data["contexts"] += [
        {"name": f"c{number}", "context": {"cluster": cluster, "user": "one", "namespace": namespace}}
        for number, (namespace, cluster) in enumerate(others)
    ]
    file.write_text(yaml.safe_dump(data))
    assert load(file).namespaces == ("mine", "shared")


# -- in a pod ------------------------------------------------------------------------------------------------


def pod_files(folder: Path) -> Path:
    folder.mkdir()
    (folder / "token").write_text("of-the-pod\n")
    (folder / "ca.crt").write_text("pem")
    (folder / "namespace").write_text("inside")
    return folder


def test_a_pod_finds_its_own_cluster(tmp_path):
    environment = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}
    access = in_cluster(environment, pod_files(tmp_path / "account"))
    assert access is not None
    assert (access.server, access.namespace) == ("https://10.0.0.1:443", "inside")
    assert access.login.current_token() == "of-the-pod"
    assert access.authority.read("") == b"pem"


def test_a_pod_of_the_newer_internet_has_brackets_around_its_address(tmp_path):
    environment = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}
    access = in_cluster(environment, pod_files(tmp_path / "account"))
    assert access is not None
    assert access.server == "https://[fd00::1]:443"


def test_outside_of_a_pod_there_is_no_own_cluster(tmp_path):
    assert in_cluster({}, pod_files(tmp_path / "account")) is None
    assert in_cluster({"KUBERNETES_SERVICE_HOST": "a", "KUBERNETES_SERVICE_PORT": "1"}, tmp_path) is None


# -- tokens that change --------------------------------------------------------------------------------------


def test_a_token_file_is_read_each_time(tmp_path):
    file = tmp_path / "token"
    file.write_text("first\n")
    login = load(write(tmp_path / "config", user={"tokenFile": "token"})).login
    assert login.current_token() == "first"
    file.write_text("second\n")
    assert login.current_token() == "second"


def test_the_file_of_a_token_weighs_more_than_the_token_while_it_can_be_read(tmp_path):
    (tmp_path / "token").write_text("from-file")
    login = Login(token="written", token_file=str(tmp_path / "token"))
    assert login.current_token() == "from-file"
    (tmp_path / "token").unlink()
    assert login.current_token() == "written"


def test_a_token_file_that_is_gone_is_named(tmp_path):
    with pytest.raises(LoginError, match="gone cannot be read: no such file"):
        Login(token_file=str(tmp_path / "gone")).current_token()


# -- what is wrong -------------------------------------------------------------------------------------------


def test_a_file_that_is_named_must_be_there(tmp_path):
    assert "does not exist" in refusal(tmp_path / "none").message


def test_without_any_file_it_is_said_where_one_was_looked_for(tmp_path):
    error = refusal(environment={"HOME": str(tmp_path)})
    assert f"{tmp_path}/.kube/config does not exist" in error.message
    assert "KUBECONFIG" in error.advice


def test_a_context_that_is_not_there_is_answered_with_those_that_are(tmp_path):
    error = refusal(write(tmp_path / "config"), context="prod")
    assert error.message.endswith("has no context prod.")
    assert error.advice == "There are one."


def test_without_a_current_context_the_choices_are_named(tmp_path):
    error = refusal(write(tmp_path / "config", current=None))
    assert error.message.endswith("names no current context.")
    assert error.advice == "There are one."


def test_a_number_where_a_text_belongs_is_to_be_quoted(tmp_path):
    error = refusal(write(tmp_path / "config", user={"token": 123}))
    assert "$.users[0].user.token" in error.message
    assert error.advice == "Put the value into quotes."


@pytest.mark.parametrize("text", ["{", "[1, 2]", "kind: Pod", "\x00"])
def test_a_file_of_something_else_is_no_kubeconfig(tmp_path, text):
    (tmp_path / "config").write_text(text)
    assert str(tmp_path / "config") in refusal(tmp_path / "config").message


PLUGIN = {"command": "x", "apiVersion": "client.authentication.k8s.io/v1", "interactiveMode": "Never"}


@pytest.mark.parametrize(
    ("cluster", "user", "words"),
    [
        ({"certificate-authority": "a", "certificate-authority-data": "YQ=="}, {}, "has both"),
        ({"insecure-skip-tls-verify": True, "certificate-authority-data": "YQ=="}, {}, "insecure-skip-tls"),
        ({"proxy-url": "ftp://a"}, {}, "none of http, https and socks5"),
        ({"server": "https://"}, {}, "not the address of a server"),
        ({"server": ""}, {}, "has no server"),
        ({}, {"token": "a", "username": "b"}, "a token and a password"),
        ({}, {"client-certificate": "a"}, "but no client-key"),
        ({}, {"client-key": "a"}, "but no client-certificate"),
        ({}, {"client-certificate": "a", "client-certificate-data": "YQ=="}, "has both client-certificate"),
        ({}, {"as-groups": ["a"]}, "`as` is missing"),
        ({}, {"auth-provider": {"name": "gcp"}}, "auth-provider gcp, which is not built in"),
        ({}, {"exec": {**PLUGIN, "command": ""}}, "no command"),
        ({}, {"exec": {**PLUGIN, "interactiveMode": ""}}, "interactiveMode"),
        ({}, {"exec": {**PLUGIN, "interactiveMode": "Maybe"}}, "unknown mode Maybe"),
        ({}, {"exec": {**PLUGIN, "apiVersion": "v1alpha1"}}, "speaks v1alpha1"),
        ({}, {"exec": PLUGIN, "auth-provider": {"name": "oidc"}}, "both exec and auth-provider"),
    ],
)
def test_what_kubectl_refuses_is_refused(tmp_path, cluster, user, words):
    assert words in refusal(write(tmp_path / "config", cluster=cluster, user=user)).message


@pytest.mark.parametrize("kind", ["cluster", "user", "context"])
def test_a_name_that_is_given_twice_is_refused(tmp_path, kind):
    file = write(tmp_path / "config")
    content = yaml.safe_load(file.read_text())
    content[f"{kind}s"] *= 2
    file.write_text(yaml.safe_dump(content))
    assert refusal(file).message.endswith(f"has the {kind} one twice.")


@pytest.mark.parametrize("kind", ["cluster", "user"])
def test_a_context_that_names_what_is_not_there_is_refused(tmp_path, kind):
    error = refusal(write(tmp_path / "config", context={kind: "ghost"}))
    assert f"names the {kind} 'ghost'" in error.message


def test_a_certificate_that_is_not_there_is_named():
    with pytest.raises(ConfigError, match="client key /no/where cannot be read: no such file"):
        Material(file="/no/where").read("client key")


def test_data_that_is_not_base64_is_refused():
    with pytest.raises(ConfigError, match="certificate authority in the kubeconfig is not base64"):
        Material(data="&&&").read("certificate authority")
