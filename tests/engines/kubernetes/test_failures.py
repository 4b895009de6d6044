"""What follows a failure, as the rules of a Job."""

import pytest

from tests.engines.kubernetes.objects_of import only_job, task

IGNORED = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
OTHERS = {"action": "FailIndex", "onExitCodes": {"operator": "NotIn", "values": [0]}}


def spec(more):
    return only_job(task(more))["spec"]


def rules(more):
    return spec(more)["podFailurePolicy"]["rules"]


def on(action, *codes, operator="In"):
    return {"action": action, "onExitCodes": {"operator": operator, "values": list(codes)}}


def test_without_a_word_nothing_is_tried_again_and_disruptions_do_not_count():
    found = spec("replicas: 3")
    assert found["podFailurePolicy"]["rules"] == [IGNORED]
    assert found["backoffLimitPerIndex"] == 0
    assert "maxFailedIndexes" not in found


def test_retries_for_some_codes_let_others_fail_at_once():
    assert rules("retries: {limit: 2, on: {exit_codes: [3-4]}}") == [IGNORED, on("Count", 3, 4), OTHERS]


def test_a_rule_that_tries_again_does_so_three_times_and_for_nothing_else():
    found = spec("on_failure: [{exit_codes: 9, action: retry}]")
    assert found["backoffLimitPerIndex"] == 3
    assert found["podFailurePolicy"]["rules"] == [IGNORED, on("Count", 9), OTHERS]


def test_retries_beside_such_a_rule_set_the_limit_and_hold_for_everything():
    found = spec("retries: 1, on_failure: [{exit_codes: 9, action: retry}]")
    assert found["backoffLimitPerIndex"] == 1
    assert found["podFailurePolicy"]["rules"] == [IGNORED, on("Count", 9)]


def test_an_exit_is_any_code_that_is_no_kill():
    (_, rule) = rules("on_failure: [{reasons: exit, action: fail-task}]")
    assert rule["onExitCodes"]["operator"] == "NotIn"
    assert rule["onExitCodes"]["values"] == list(range(128, 193))


def test_kills_are_named_all_together():
    (_, rule) = rules("on_failure: [{reasons: [signal, out-of-memory], action: fail-task}]")
    assert rule["onExitCodes"] == {"operator": "In", "values": list(range(129, 193))}


def test_a_code_and_a_reason_must_both_match():
    assert rules("on_failure: [{exit_codes: [3, 137], reasons: exit, action: fail-job}]")[1] == on(
        "FailJob", 3
    )


def test_a_rule_for_disruptions_stands_in_the_place_of_ours():
    (first,) = rules("on_failure: [{reasons: [node-lost, preempted], action: fail-job}]")
    assert first == {**IGNORED, "action": "FailJob"}
    assert rules("on_failure: [{reasons: [node-lost, preempted], action: retry}]")[0] == IGNORED


def test_rules_stand_in_the_order_written():
    more = "on_failure: [{exit_codes: 3, action: fail-task}, {exit_codes: [1-9], action: retry}]"
    assert rules(more)[1:3] == [on("FailJob", 3), on("Count", *range(1, 10))]


def test_what_an_earlier_rule_is_for_is_not_forgiven_by_a_later_one():
    more = "on_failure: [{exit_codes: 3, action: fail-task}, {exit_codes: [1-5], action: ignore}]"
    script = only_job(task(more))["spec"]["template"]["spec"]["containers"][0]["command"][2]
    assert '"$code" -ge 1 ] && [ "$code" -le 2' in script
    assert '"$code" -ge 4 ] && [ "$code" -le 5' in script


@pytest.mark.parametrize(
    ("more", "policy", "most"),
    [
        ("replicas: 8, completions: 3", {"succeededCount": 3}, 5),
        ("replicas: 8, success: {count: 2}", {"succeededCount": 2}, 6),
        ("replicas: 8, success: {replicas: [0-2, 5, 7]}", {"succeededIndexes": "0-2,5,7"}, None),
        (
            "replicas: 8, success: {replicas: [0-2], count: 1}",
            {"succeededIndexes": "0-2", "succeededCount": 1},
            None,
        ),
        ("replicas: 8, completions: 3, max_failed: 2", {"succeededCount": 3}, 2),
    ],
)
def test_a_success_policy_ends_it_early_either_way(more, policy, most):
    found = spec(more)
    assert found["successPolicy"] == {"rules": [policy]}
    assert found.get("maxFailedIndexes") == most


def test_a_copy_that_restarts_in_place_never_fails_its_job():
    found = spec("restart: on-failure, replicas: 3, completions: 2")
    assert "podFailurePolicy" not in found
    assert found["backoffLimit"] == 2**31 - 1
    assert found["successPolicy"] == {"rules": [{"succeededCount": 2}]}


def test_a_job_says_how_many_failures_are_forgiven():
    noted = only_job(task("replicas: 3, max_failed: 1"))["metadata"]["annotations"]
    assert noted["jobman.io/max-failed"] == "1"
    noted = only_job(task("replicas: 3, max_failed: 1, completions: 1"))["metadata"]["annotations"]
    assert "jobman.io/max-failed" not in noted
