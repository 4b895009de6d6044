"""Programs that log in: what they are told, and what is done with what they say."""

import asyncio
import json
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from jobman.engines.kubernetes.access import Access, Login, Material, Plugin, Variable
from jobman.engines.kubernetes.credentials import Credentials
from jobman.engines.kubernetes.errors import LoginError
from jobman.engines.kubernetes.exec_plugin import run_plugin

V1 = "client.authentication.k8s.io/v1"


def plugin(folder: Path, script: str, **given) -> Plugin:
    """A program of these lines of Python, which counts its runs."""
    file = folder / "login"
    runs = folder / "runs"
    file.write_text(
        f"#!{sys.executable}\nimport os, json, sys\nopen({str(runs)!r}, 'a').write('x')\n{script}\n"
    )
    file.chmod(0o755)
    return Plugin(command=str(file), **{"api_version": V1, "interactive_mode": "Never", **given})


def runs(folder: Path) -> int:
    return len((folder / "runs").read_text())


def printing(status: dict[str, Any], version: str = V1) -> str:
    answer = {"apiVersion": version, "kind": "ExecCredential", "status": status}
    return f"print(json.dumps({answer!r}))"


def access(login: Plugin, **given) -> Access:
    return Access(server="https://one.example", login=Login(plugin=login), **given)


def run(login: Plugin, **given):
    return asyncio.run(run_plugin(login, access(login, **given)))


def failure(login: Plugin) -> LoginError:
    with pytest.raises(LoginError) as raised:
        run(login)
    return raised.value


def headers_of(credentials: Credentials) -> dict[str, str]:
    return dict(asyncio.run(credentials.headers()))


def test_a_token_that_was_issued_is_shown(tmp_path):
    login = plugin(tmp_path, printing({"token": "abc"}))
    assert headers_of(Credentials(access(login))) == {"Authorization": "Bearer abc"}


def test_arguments_and_variables_are_given(tmp_path):
    script = "print(json.dumps({'apiVersion': sys.argv[1], 'status': {'token': os.environ['WHO']}}))"
    login = plugin(tmp_path, script, args=[V1], env=[Variable(name="WHO", value="ada")])
    assert run(login).token == "ada"


def test_it_is_told_of_the_cluster_where_it_wants_to_be(tmp_path):
    script = f"""
told = json.loads(os.environ["KUBERNETES_EXEC_INFO"])
json.dump(told, open({str(tmp_path / "told")!r}, "w"))
{printing({"token": "abc"})}
"""
    run(
        plugin(tmp_path, script, provide_cluster_info=True),
        authority=Material(data="cGVt"),
        tls_server_name="inside",
        plugin_config={"audience": 7},
    )
    assert json.loads((tmp_path / "told").read_text()) == {
        "kind": "ExecCredential",
        "apiVersion": V1,
        "spec": {
            "interactive": False,
            "cluster": {
                "server": "https://one.example",
                "tls-server-name": "inside",
                "certificate-authority-data": "cGVt",
                "config": {"audience": 7},
            },
        },
    }


def test_it_is_not_told_of_the_cluster_otherwise(tmp_path):
    script = printing({"token": "abc"}).replace("'abc'", "os.environ['KUBERNETES_EXEC_INFO']")
    assert json.loads(run(plugin(tmp_path, script)).token)["spec"] == {"interactive": False}


def test_what_does_not_expire_is_asked_for_once(tmp_path):
    credentials = Credentials(access(plugin(tmp_path, printing({"token": "abc"}))))

    async def many() -> None:
        await asyncio.gather(*(credentials.headers() for _ in range(5)))
        await credentials.headers()

    asyncio.run(many())
    assert runs(tmp_path) == 1


@pytest.mark.parametrize(("minutes", "expected"), [(-1, 2), (60, 1)])
def test_what_has_expired_is_asked_for_again(tmp_path, minutes, expected):
    until = (datetime.now(UTC) + timedelta(minutes=minutes)).strftime("%Y-%m-%dT%H:%M:%SZ")
    credentials = Credentials(
        access(plugin(tmp_path, printing({"token": "abc", "expirationTimestamp": until})))
    )

    async def twice() -> None:
        await credentials.headers()
        await credentials.headers()

    asyncio.run(twice())
    assert runs(tmp_path) == expected


def test_what_the_server_refused_is_renewed_once_by_all_who_were_refused(tmp_path):
    credentials = Credentials(access(plugin(tmp_path, printing({"token": "abc"}))))

    async def refused() -> list[bool]:
        await credentials.headers()
        edition = credentials.edition
        return await asyncio.gather(*(credentials.renew(edition) for _ in range(3)))

    assert asyncio.run(refused()) == [True, True, True]
    assert runs(tmp_path) == 2


def test_a_token_of_ones_own_weighs_more_than_a_plugin(tmp_path):
    login = plugin(tmp_path, "sys.exit(1)")
    own = Access(server="https://one.example", login=Login(token="own", plugin=login))
    assert headers_of(Credentials(own)) == {"Authorization": "Bearer own"}


def test_a_name_and_a_password_are_shown_as_such():
    basic = Access(server="https://one.example", login=Login(username="ada", password="pw"))
    assert headers_of(Credentials(basic)) == {"Authorization": "Basic YWRhOnB3"}


def test_a_certificate_that_was_issued_is_shown(tmp_path):
    login = plugin(tmp_path, printing({"clientCertificateData": "crt", "clientKeyData": "key"}))
    credentials = Credentials(access(login))
    assert headers_of(credentials) == {}
    assert credentials.certificate() == (b"crt", b"key")


def test_a_program_that_is_not_there_is_answered_with_how_to_install_it(tmp_path):
    error = failure(
        Plugin(
            command="/no/login",
            api_version=V1,
            interactive_mode="Never",
            install_hint="Get it from the site.",
        )
    )
    assert error.message == "The plugin /no/login cannot be run: no such file or directory."
    assert error.advice == "Get it from the site."


def test_its_last_words_explain_a_failure(tmp_path):
    error = failure(plugin(tmp_path, "sys.stderr.write('one\\nyour session is over.\\n'); sys.exit(3)"))
    assert error.message.endswith("failed with exit code 3: your session is over.")


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("print('hello')", "did not print an ExecCredential"),
        (printing({}), "neither a token nor a certificate"),
        (printing({"clientCertificateData": "crt"}), "a certificate without its key"),
        (printing({"token": "a"}, version="client.authentication.k8s.io/v1beta1"), "the kubeconfig says"),
    ],
)
def test_an_answer_that_cannot_be_used_is_refused(tmp_path, script, words):
    assert words in failure(plugin(tmp_path, script)).message


def test_one_that_must_ask_a_person_needs_a_terminal(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "stdin", None)
    error = failure(plugin(tmp_path, printing({"token": "a"}), interactive_mode="Always"))
    assert "there is no terminal" in error.message


def test_nothing_that_was_issued_is_shown_in_a_trace(tmp_path):
    issued = run(plugin(tmp_path, printing({"token": "hidden"})))
    assert "hidden" not in repr(issued)
    assert msgspec.structs.asdict(issued)["token"] == "hidden"
