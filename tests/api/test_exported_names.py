"""The names that users may rely on, and no others."""

import jobman

NAMES = [
    "AsyncJob",
    "Client",
    "Job",
    "JobFailed",
    "JobSpec",
    "Place",
    "Plan",
    "Play",
    "Problem",
    "Refused",
    "Rehearsal",
    "SpecError",
    "Unreachable",
    "__version__",
    "find",
    "load",
    "load_all",
    "loads",
    "submit",
    "submit_async",
    "what_if",
]


def test_the_exported_names_are_exactly_these():
    assert sorted(jobman.__all__) == NAMES


def test_dir_shows_the_exported_names():
    assert dir(jobman) == NAMES


def test_every_exported_name_is_there():
    assert [name for name in NAMES if getattr(jobman, name, None) is None] == []


def test_any_other_name_is_an_attribute_error():
    assert not hasattr(jobman, "sumbit")


def test_the_parameters_of_the_functions_are_these():
    import inspect

    common = ["settings", "parameters", "strict"]
    assert list(inspect.signature(jobman.load).parameters) == ["path", *common]
    assert list(inspect.signature(jobman.load_all).parameters) == ["path", *common]
    assert list(inspect.signature(jobman.loads).parameters) == ["text", "name", *common]
