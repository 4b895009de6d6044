"""The prefix of the settings stands before images that name no registry, on a cluster."""

from __future__ import annotations

import pytest

from jobman.client.direct_submission import prepare, read
from jobman.control.answers import Submission

TASK = "command: [echo], resources: {type: slot, count: 1, with: [{type: core, count: 1}]}"


def image_of(settings: str, image: str) -> str:
    document = f"version: 1\ntasks: [{{name: a, {image}{TASK}}}]\n"
    submission = Submission(document=document, settings=settings)
    plans, _ = read(submission)
    (prepared,) = prepare(submission, plans, key="k", namespace="lab", owner="ada")
    (job,) = prepared.compiled.units["a"]
    name: str = job["spec"]["template"]["spec"]["containers"][0]["image"]
    return name


@pytest.mark.parametrize(
    ("image", "used"),
    [
        ("image: 'fit:1', ", "harbor.example.org/lab/fit:1"),
        ("image: 'tools/fit:1', ", "harbor.example.org/lab/tools/fit:1"),
        ("image: 'other.example.org/fit:1', ", "other.example.org/fit:1"),
        ("image: 'localhost/fit:1', ", "localhost/fit:1"),
        ("", "harbor.example.org/lab/base:1"),
    ],
)
def test_a_job_that_is_submitted_pulls_what_the_settings_mean(image, used):
    settings = "image_prefix: harbor.example.org/lab/\ndefault_image: 'base:1'\n"
    assert image_of(settings, image) == used


def test_without_a_prefix_an_image_is_what_the_document_says():
    assert image_of("user: {}\n", "image: 'fit:1', ") == "fit:1"
