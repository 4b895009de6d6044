"""What an engine cannot do is refused by name before anything runs; what it can do, it does."""

import pytest

from jobman.client import Refused
from tests.conformance.engines import Engine

DOCUMENTS = {
    "shape.site-type": """
        version: 1
        tasks:
        - name: task
          command: ["true"]
          resources: {type: node, count: 1, with: [{type: licence, count: 1}]}
    """,
    "shape.levels": """
        version: 1
        tasks:
        - {name: task, command: ["true"], resources: {type: rack, count: 1, with: [{type: node, count: 1}]}}
    """,
    "scheduler": """
        version: 1
        tasks:
        - {name: task, command: ["true"], scheduler: fluence}
    """,
    "runtime.class": """
        version: 1
        tasks:
        - {name: task, command: ["true"], runtime: gvisor}
    """,
    "devices": """
        version: 1
        tasks:
        - {name: task, command: ["true"], devices: [gpu.example.org/a100]}
    """,
    "volumes.claim": """
        version: 1
        tasks:
        - {name: task, command: ["true"], volumes: [{name: v, kind: claim, claim: results, to: /v}]}
    """,
    "volumes.csi": """
        version: 1
        tasks:
        - {name: task, command: ["true"], volumes: [{name: v, kind: csi, driver: csi.example.org, to: /v}]}
    """,
    "volumes.nfs": """
        version: 1
        tasks:
        - name: task
          command: ["true"]
          volumes: [{name: v, kind: nfs, server: example.org, path: /e, to: /v}]
    """,
    "volumes.image": """
        version: 1
        tasks:
        - {name: task, command: ["true"], volumes: [{name: v, kind: image, image: "example/tools:1", to: /v}]}
    """,
    "network.isolated": """
        version: 1
        network: {isolated: true}
        tasks:
        - {name: task, command: ["true"]}
    """,
}
"""Documents that use a feature few engines have."""


@pytest.mark.parametrize("feature", DOCUMENTS)
def test_a_rare_feature_works_or_is_refused_by_its_name(engine: Engine, feature: str) -> None:
    outcome = engine.run(DOCUMENTS[feature])
    assert outcome.state == "succeeded"


def test_a_refusal_names_every_feature_and_who_asked_for_it(engine: Engine) -> None:
    with pytest.raises(Refused) as refused:
        engine.submit_all("""
            version: 1
            tasks:
            - {name: fine, command: ["true"]}
            - {name: odd, command: ["true"], scheduler: fluence, identity: nobody-here}
            - {name: strange, command: ["true"], devices: [fpga]}
        """)
    assert refused.value.code == "cannot"
    assert refused.value.exit_code == 4
    said = str(refused.value)
    for feature, task in (("scheduler", "odd"), ("identity", "odd"), ("devices", "strange")):
        assert f"{feature} ({task})" in said
    assert "fine" not in said


def test_one_refused_document_of_a_file_keeps_the_others_from_starting(engine: Engine) -> None:
    with pytest.raises(Refused):
        engine.submit_all("""
            version: 1
            name: good
            tasks:
            - {name: work, command: [touch, started]}
            ---
            version: 1
            name: bad
            tasks:
            - {name: work, command: ["true"], scheduler: fluence}
        """)
    assert not (engine.folder / "started").exists()


def test_values_of_a_feature_that_ask_for_too_much_are_refused_too(engine: Engine) -> None:
    for text in (
        """
        version: 1
        tasks:
        - {name: task, command: ["true"], runtime: {os: windows}}
        """,
        """
        version: 1
        tasks:
        - name: task
          command: ["true"]
          volumes: [{name: v, kind: ephemeral, size: 1Mi, class: fast, to: /v}]
        """,
    ):
        with pytest.raises(Refused) as refused:
            engine.submit(text)
        assert refused.value.code == "cannot"
