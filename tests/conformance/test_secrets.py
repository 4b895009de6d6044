"""Secrets and variables from elsewhere: named in the document, never written in it."""

import stat

from tests.conformance.engines import Engine


def test_an_entry_of_a_secret_is_carried_by_a_variable(engine: Engine) -> None:
    engine.secret("database", password="hunter2", user="ada")
    outcome = engine.run("""
        version: 1
        tasks:
        - name: login
          command: [sh, -c, 'echo "$DB_PASSWORD" | rev']
          secrets: [{name: database, key: password, variable: DB_PASSWORD}]
    """)
    assert outcome.lines() == ["2retnuh"]


def test_a_secret_is_a_folder_of_files_where_nothing_else_is_said(engine: Engine) -> None:
    engine.secret("licence-token", token="t0k3n", server="example")
    outcome = engine.run("""
        version: 1
        secrets: [licence-token]
        tasks:
        - {name: show, command: [sh, -c, 'cd "$JOBMAN_SECRET_LICENCE_TOKEN" && ls && cat token']}
    """)
    assert outcome.lines() == ["server", "token", "t0k3n"]


def test_a_secret_may_be_a_file_at_a_path(engine: Engine) -> None:
    engine.secret("certificate", pem="-----BEGIN-----")
    outcome = engine.run(
        """
        version: 1
        parameters: {place: /run/tls.pem}
        tasks:
        - name: show
          command: [cat, "{{place}}"]
          secrets: [{name: certificate, key: pem, path: "{{place}}"}]
    """,
        parameters={"place": engine.folder / "tls.pem"},
    )
    assert outcome.lines() == ["-----BEGIN-----"]
    assert not (engine.folder / "tls.pem").exists()


def test_the_value_of_a_secret_appears_nowhere_but_where_the_command_writes_it(engine: Engine) -> None:
    engine.secret("hidden", value="unspeakable-value")
    outcome = engine.run("""
        version: 1
        tasks:
        - name: quiet
          command: [sh, -c, 'test "$WORD" = unspeakable-value; exit 3']
          secrets: [{name: hidden, key: value, variable: WORD}]
    """)
    assert outcome.exit_code == 3
    # The document of this scenario has the word in its command: it is left out.
    seen = str(outcome).replace(outcome.job.document, "")
    assert "unspeakable-value" not in seen


def test_a_secret_that_does_not_exist_is_said_before_the_command_runs(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        tasks:
        - {name: login, command: [echo, never], secrets: [no-such-secret]}
    """)
    assert outcome.state == "failed"
    assert outcome.reasons("login.0") == ["launch-failed"]
    assert "no-such-secret" in outcome.reason
    assert outcome.lines() == []


def test_variables_come_from_secrets_configurations_and_files(engine: Engine) -> None:
    engine.secret("account", USER_NAME="ada")
    engine.config("shared", LEVEL="3", MODE="exact")
    outcome = engine.run(
        """
        version: 1
        env_from:
        - {config: shared, prefix: APP_}
        - {secret: account}
        tasks:
        - name: show
          command: [sh, -c, 'echo "$APP_LEVEL $APP_MODE $USER_NAME $FROM_FILE"']
          env_from: [{file: defaults.env}]
          attributes: {environment: {APP_MODE: near}}
    """,
        files={"defaults.env": "# a comment\nFROM_FILE=yes\n"},
    )
    assert outcome.lines() == ["3 near ada yes"]


def test_a_profile_of_the_settings_brings_its_context_by_name_and_by_label(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        labels: {licence: matlab}
        tasks:
        - {name: with, profiles: tools, command: [sh, -c, 'echo "$TOOLS $LICENCE"']}
        - {name: without, command: [sh, -c, 'echo "$TOOLS $LICENCE"']}
    """)
    assert outcome.lines("with.0") == ["/opt/tools granted"]
    assert outcome.lines("without.0") == [" granted"]


def test_a_file_of_the_engine_that_holds_a_secret_is_closed_to_others(engine: Engine) -> None:
    engine.secret("closed", entry="value")
    outcome = engine.run("""
        version: 1
        tasks:
        - {name: show, secrets: [closed], command: [sh, -c, 'stat -c %f "$JOBMAN_SECRET_CLOSED/entry"']}
    """)
    assert not int(outcome.lines()[0], 16) & (stat.S_IRWXG | stat.S_IRWXO)
