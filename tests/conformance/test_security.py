"""The security context of the copies."""

import getpass
import os

import pytest

from jobman.client import Refused
from tests.conformance.engines import Engine

AS_ROOT = os.geteuid() == 0


def test_an_identity_is_an_account_the_copies_act_as(engine: Engine) -> None:
    outcome = engine.run(
        """
        version: 1
        parameters: {me: root}
        tasks:
        - {name: who, command: [id, -un], identity: "{{me}}"}
    """,
        parameters={"me": getpass.getuser()},
    )
    assert outcome.lines("who.0") == [getpass.getuser()]


def test_a_umask_shapes_the_modes_of_new_files(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        tasks:
        - {name: strict, command: [sh, -c, "touch strict; stat -c %a strict"], security: {umask: "0077"}}
        - {name: open, command: [sh, -c, "touch open; stat -c %a open"], security: {umask: "000"}}
        - {name: usual, command: [sh, -c, "touch usual; stat -c %a usual"]}
    """)
    assert outcome.lines("strict.0") == ["600"]
    assert outcome.lines("open.0") == ["666"]
    assert outcome.lines("usual.0") == ["644"]


def test_no_program_gains_rights_unless_the_document_says_so(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        tasks:
        - {name: usual, command: [grep, NoNewPrivs, /proc/self/status], security: {umask: "022"}}
        - {name: open, command: [grep, NoNewPrivs, /proc/self/status], security: {no_new_privileges: false}}
    """)
    assert outcome.lines("usual.0")[0].split() == ["NoNewPrivs:", "1"]
    assert outcome.lines("open.0")[0].split() == ["NoNewPrivs:", "0"]


def test_another_user_is_for_root_to_give(engine: Engine) -> None:
    document = """
        version: 1
        tasks:
        - name: other
          command: [sh, -c, "id -u; id -g; id -G"]
          attributes: {cwd: /}
          security: {uid: 12345, gid: 23456, groups: [34567]}
    """
    if not AS_ROOT:
        with pytest.raises(Refused) as refused:
            engine.submit(document)
        assert refused.value.exit_code == 4
        assert "security" in str(refused.value)
        return
    outcome = engine.run(document)
    assert outcome.lines() == ["12345", "23456", "23456 34567"]


def test_capabilities_can_be_taken_and_every_right_be_given(engine: Engine) -> None:
    document = """
        version: 1
        tasks:
        - name: bare
          command: [grep, CapEff, /proc/self/status]
          security: {capabilities: {drop: [ALL]}}
        - name: full
          command: [grep, CapEff, /proc/self/status]
          security: {privileged: true}
    """
    if not AS_ROOT:
        with pytest.raises(Refused) as refused:
            engine.submit(document)
        assert "security.privileged" in str(refused.value)
        return
    outcome = engine.run(document)
    assert int(outcome.lines("bare.0")[0].split()[1], 16) == 0
    assert int(outcome.lines("full.0")[0].split()[1], 16) != 0


def test_security_merges_key_by_key(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        security: {umask: "0077", no_new_privileges: false}
        tasks:
        - name: both
          command: [sh, -c, "touch file; stat -c %a file; grep NoNewPrivs /proc/self/status"]
          security: {umask: "0027"}
    """)
    mode, rights = outcome.lines()
    assert mode == "640"
    assert rights.split()[1] == "0"
