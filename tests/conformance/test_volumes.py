"""Volumes: storage that is there when the copy starts."""

import subprocess
from collections.abc import Iterator
from pathlib import Path
from tempfile import mkdtemp

import pytest

from tests.conformance.engines import Engine


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    """A path that does not exist, for copies to find their volume at."""
    folder = Path(mkdtemp(dir=tmp_path))
    yield folder / "volume"
    assert not (folder / "volume").is_symlink()


def test_a_folder_of_the_host_is_found_where_it_is_wanted(engine: Engine, place: Path) -> None:
    (engine.folder / "data").mkdir()
    (engine.folder / "data" / "input").write_text("input\n")
    outcome = engine.run(
        """
        version: 1
        parameters: {data: /data, place: /place}
        tasks:
        - name: use
          command: [sh, -c, "cat {{place}}/input; echo output > {{place}}/output"]
          volumes: [{name: data, kind: host, path: "{{data}}", to: "{{place}}"}]
    """,
        parameters={"data": engine.folder / "data", "place": place},
    )
    assert outcome.lines() == ["input"]
    assert (engine.folder / "data" / "output").read_text() == "output\n"


def test_a_folder_of_the_host_is_made_where_that_is_asked_for(engine: Engine, place: Path) -> None:
    document = """
        version: 1
        parameters: {data: /data, place: /place, create: true}
        tasks:
        - name: use
          command: [touch, "{{place}}/made"]
          volumes: [{name: data, kind: host, path: "{{data}}", to: "{{place}}", create: "{{create}}"}]
    """
    given = {"data": engine.folder / "new" / "deep", "place": place}
    without = engine.run(document, parameters={**given, "create": "false"})
    assert without.state == "failed"
    assert without.reasons("use.0") == ["launch-failed"]
    assert "does not exist" in without.reason
    assert engine.run(document, parameters=given).state == "succeeded"
    assert (engine.folder / "new" / "deep" / "made").exists()


@pytest.mark.parametrize("kind", ["scratch", "ephemeral", "memory"])
def test_room_made_for_a_copy_is_empty_writable_and_gone_with_it(
    engine: Engine, place: Path, kind: str
) -> None:
    outcome = engine.run(
        DOCUMENTS[kind],
        parameters={"place": place},
    )
    assert outcome.state == "succeeded"
    assert outcome.lines() == ["0", "1"] * 2


DOCUMENTS = {
    "scratch": """
        version: 1
        parameters: {place: /place}
        tasks:
        - name: use
          replicas: 2
          parallelism: 1
          command: [sh, -c, "ls {{place}} | wc -l; echo x > {{place}}/file; ls {{place}} | wc -l"]
          volumes: [{name: room, kind: scratch, size: 10Mi, to: "{{place}}"}]
    """,
    "ephemeral": """
        version: 1
        parameters: {place: /place}
        tasks:
        - name: use
          replicas: 2
          parallelism: 1
          command: [sh, -c, "ls {{place}} | wc -l; echo x > {{place}}/file; ls {{place}} | wc -l"]
          volumes: [{name: room, kind: ephemeral, size: 10Mi, to: "{{place}}"}]
    """,
    "memory": """
        version: 1
        parameters: {place: /place}
        tasks:
        - name: use
          replicas: 2
          parallelism: 1
          command: [sh, -c, "ls {{place}} | wc -l; echo x > {{place}}/file; ls {{place}} | wc -l"]
          volumes: [{name: room, kind: memory, size: 10Mi, to: "{{place}}"}]
    """,
}


def test_a_checkout_of_a_repository_has_the_revision_that_was_asked_for(engine: Engine, place: Path) -> None:
    repository = engine.folder / "model"
    git("init", "--quiet", "--initial-branch=main", str(repository))
    commit(repository, "one")
    git("-C", str(repository), "tag", "v1")
    commit(repository, "two")
    outcome = engine.run(
        """
        version: 1
        parameters: {repository: /model, place: /place}
        tasks:
        - name: newest
          command: [cat, "{{place}}/file"]
          volumes: [{name: source, kind: git, repository: "{{repository}}", to: "{{place}}"}]
        - name: tagged
          depends_on: newest
          command: [cat, "{{place}}/file"]
          volumes: [{name: source, kind: git, repository: "{{repository}}", revision: v1, to: "{{place}}"}]
    """,
        parameters={"repository": repository, "place": place},
    )
    assert outcome.lines() == ["two", "one"]


def git(*arguments: str) -> None:
    identity = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
    subprocess.run(["git", *identity, *arguments], check=True, capture_output=True)


def commit(repository: Path, content: str) -> None:
    (repository / "file").write_text(f"{content}\n")
    git("-C", str(repository), "add", "file")
    git("-C", str(repository), "commit", "--quiet", "-m", content)


def test_the_entries_of_secrets_and_configurations_are_files(engine: Engine, place: Path) -> None:
    engine.secret("volume-keys", private="hidden\n")
    engine.config("volume-model", level="3\n", mesh="fine\n")
    outcome = engine.run(
        """
        version: 1
        parameters: {place: /place}
        tasks:
        - name: secret
          command: [sh, -c, "cat {{place}}/private; stat -L -c %a {{place}}/private"]
          volumes: [{name: keys, kind: secret, secret: volume-keys, mode: "0400", to: "{{place}}"}]
        - name: config
          depends_on: secret
          command: [sh, -c, "cat {{place}}/level {{place}}/mesh"]
          volumes: [{name: conf, kind: config, config: volume-model, to: "{{place}}"}]
    """,
        parameters={"place": place},
    )
    assert outcome.lines("secret.0") == ["hidden", "400"]
    assert outcome.lines("config.0") == ["3", "fine"]


def test_a_nearer_volume_of_the_same_name_replaces_one_further_out(engine: Engine, place: Path) -> None:
    for name in ("far", "near"):
        (engine.folder / name).mkdir()
        (engine.folder / name / "file").write_text(f"{name}\n")
    outcome = engine.run(
        """
        version: 1
        parameters: {folder: /folder, place: /place}
        volumes: [{name: data, kind: host, path: "{{folder}}/far", to: "{{place}}"}]
        tasks:
        - {name: inherits, command: [cat, "{{place}}/file"]}
        - name: replaces
          depends_on: inherits
          command: [cat, "{{place}}/file"]
          volumes: [{name: data, kind: host, path: "{{folder}}/near", to: "{{place}}"}]
    """,
        parameters={"folder": engine.folder, "place": place},
    )
    assert outcome.lines() == ["far", "near"]


def test_what_is_already_where_a_volume_should_be_is_not_touched(engine: Engine, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "file").write_text("mine\n")
    outcome = engine.run(
        """
        version: 1
        parameters: {place: /place}
        tasks:
        - {name: use, command: [echo, never], volumes: [{name: room, kind: scratch, to: "{{place}}"}]}
    """,
        parameters={"place": tmp_path / "mine"},
    )
    assert outcome.state == "failed"
    assert outcome.reasons("use.0") == ["launch-failed"]
    assert (tmp_path / "mine" / "file").read_text() == "mine\n"
