"""`jobman schema`: the schema of the language as an editor would fetch it."""

import yaml

from jobman.spec.schema import json_schema


def test_the_schema_is_printed_as_json(jobman):
    answer = jobman("schema")
    assert (answer.code, answer.err) == (0, "")
    assert answer.data == json_schema()


def test_the_schema_can_be_had_as_yaml(jobman):
    answer = jobman("schema", "-o", "yaml")
    assert yaml.load(answer.out, Loader=yaml.CSafeLoader) == json_schema()
    assert answer.out.startswith("$schema:")


def test_the_form_may_be_asked_for_before_the_command(jobman):
    assert jobman("-o", "yaml", "schema") == jobman("schema", "-o", "yaml")
    assert jobman("schema", "-o", "json") == jobman("schema")


def test_the_schema_needs_no_settings(jobman):
    assert jobman("-s", "no-such-file.yaml", "schema").code == 0
