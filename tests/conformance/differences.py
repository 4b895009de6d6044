"""Where an engine is another world: scenarios that cannot come out there as they do elsewhere, and why.

A scenario that is not here is run, and must come out. One that is refused because a value asks for too much
is run, too: it must end with a refusal that has these words in it. The others are not run, and the report of
the components says why.
"""

from __future__ import annotations

from typing import NamedTuple


class Difference(NamedTuple):
    """Why a scenario comes out in another way; with `says`, it is refused in these words."""

    why: str = ""
    says: str = ""


def not_run(why: str, *scenarios: str) -> dict[str, Difference]:
    return {name: Difference(why=why) for name in scenarios}


def refused(says: str, *scenarios: str) -> dict[str, Difference]:
    return {name: Difference(says=says) for name in scenarios}


DIRECT: dict[str, Difference] = {
    **not_run(
        "a cluster keeps standard output and standard error as one",
        "test_output_and_errors_are_told_apart",
        "test_a_job_ends_with_the_exit_code_of_the_command_that_failed",
        "test_lines_can_be_picked",
        "test_output_goes_to_the_files_that_are_named_and_is_logged_too",
        "test_a_container_has_the_variables_the_exit_code_and_the_output_of_its_copy",
        "test_volumes_are_mounted_into_the_container",
    ),
    **not_run(
        "a command is the first process of its container, which no signal from inside reaches",
        "test_a_command_ended_by_a_signal_has_failed_with_128_and_its_number",
        "test_only_the_failures_that_are_meant_are_tried_again",
    ),
    **not_run(
        "what the submitter's shell has in its environment stays there",
        "test_the_environment_of_submission_reaches_the_command",
    ),
    **not_run(
        "copies know each other by the names of their pods, not by those of nodes",
        "test_every_copy_is_told_what_it_is",
        "test_a_task_of_a_group_is_told_all_nodes_of_the_group",
    ),
    **not_run(
        "a cluster forgets the pods of a Job that is cancelled, held or stopped, and what they wrote",
        "test_a_cancelled_copy_may_end_in_peace",
        "test_a_cancelled_copy_that_does_not_listen_is_killed_after_its_grace",
        "test_a_container_is_stopped_with_its_copy",
        "test_a_cancelled_job_stops_what_runs_and_starts_nothing_more",
        "test_a_requeued_task_is_stopped_and_starts_again_after_the_release",
        "test_a_requeue_does_not_count_as_a_retry",
        "test_the_time_limit_starts_anew_after_a_requeue",
        "test_restart_group_starts_the_group_again_from_its_beginning",
        "test_on_stop_runs_first_when_a_copy_is_asked_to_stop",
        "test_replicas_with_ports_are_found_one_by_one",
    ),
    **not_run(
        "a held Job gives its pods up, whatever it does",
        "test_a_hold_keeps_a_retry_from_starting",
        "test_a_hold_during_a_group_keeps_its_next_task_from_starting",
        "test_a_job_that_waits_can_be_held_and_released",
        "test_a_hold_reaches_what_waits_for_resources",
    ),
    **not_run(
        "an image that cannot be had is asked for again and again; `why` says so",
        "test_an_image_that_cannot_be_had_is_said",
    ),
    **not_run(
        "what no node can take waits until one can, and `why` says so",
        "test_memory_that_is_given_twice_is_not_given_at_once",
        "test_what_can_never_fit_is_refused_with_what_is_missing",
        "test_nodes_must_carry_the_labels_that_are_asked_for",
        "test_nodes_must_have_the_facts_that_are_required",
    ),
    **not_run(
        "nothing is kept for a group as a whole",
        "test_a_task_without_resources_gets_all_of_its_group",
        "test_groups_at_the_top_start_after_the_tasks_in_the_order_of_the_file",
        "test_tasks_of_a_group_share_its_nodes_and_wait_for_their_turn",
        "test_a_group_without_resources_gets_the_sum_over_its_tasks",
    ),
    **not_run(
        "nobody on a plain cluster plans ahead, or knows who is next",
        "test_a_job_of_higher_priority_goes_before_one_that_waited_longer",
        "test_jobs_of_one_priority_go_in_the_order_of_submission",
        "test_who_waits_is_promised_a_start_and_starts_by_then",
        "test_a_limit_that_is_used_up_breaks_no_promise",
        "test_a_short_job_passes_a_large_one_that_is_blocked_and_a_long_one_does_not",
        "test_more_time_is_granted_only_as_far_as_nobody_is_delayed",
        "test_behind_something_without_a_limit_nothing_is_promised",
        "test_a_cancelled_job_makes_room_in_the_plan",
        "test_every_factor_of_a_priority_is_told",
        "test_more_time_can_be_given_to_what_runs",
        "test_more_time_can_be_given_to_one_task",
        "test_more_time_for_a_task_is_also_more_time_for_its_group",
        "test_an_interactive_queue_keeps_the_order_of_submission",
        "test_a_task_of_higher_priority_goes_before_its_siblings_that_wait",
        "test_tasks_start_in_the_order_written_without_waiting",
    ),
    **refused(
        "there is no folder of submission on a cluster",
        "test_cwd_says_where_a_command_runs_and_a_relative_one_is_below",
        "test_a_working_directory_that_does_not_exist_is_said",
    ),
    **refused(
        "is not at hand; submit where it is",
        "test_a_file_that_is_missing_fails_the_task_before_its_command",
        "test_a_stage_that_failed_can_be_tried_again",
        "test_what_could_not_be_started_has_not_started[no file]",
    ),
    **refused(
        "which alternative can be had shows only at a cluster",
        "test_the_leftmost_alternative_that_can_be_satisfied_is_taken",
        "test_an_expression_may_have_parentheses",
    ),
    **refused(
        "a cluster has resources with full names",
        "test_a_rare_feature_works_or_is_refused_by_its_name[shape.site-type]",
    ),
    **not_run(
        "a level that the settings do not know is refused as something that cannot be done",
        "test_spreading_over_a_level_that_no_node_has_is_refused",
        "test_being_apart_by_a_level_that_no_node_has_is_refused",
    ),
    **not_run(
        "a cluster waits for what it does not have yet; `why` says so",
        "test_a_secret_that_does_not_exist_is_said_before_the_command_runs",
        "test_a_folder_of_the_host_is_made_where_that_is_asked_for",
        "test_room_made_for_a_copy_is_empty_writable_and_gone_with_it[ephemeral]",
        "test_a_rare_feature_works_or_is_refused_by_its_name[shape.levels]",
        "test_a_rare_feature_works_or_is_refused_by_its_name[scheduler]",
        "test_a_rare_feature_works_or_is_refused_by_its_name[runtime.class]",
        "test_a_rare_feature_works_or_is_refused_by_its_name[devices]",
        "test_a_rare_feature_works_or_is_refused_by_its_name[volumes.claim]",
        "test_a_rare_feature_works_or_is_refused_by_its_name[volumes.csi]",
        "test_a_rare_feature_works_or_is_refused_by_its_name[volumes.nfs]",
        "test_a_rare_feature_works_or_is_refused_by_its_name[volumes.image]",
    ),
    **not_run(
        "the waits between attempts are the cluster's own: ten seconds, then twice as long",
        "test_each_wait_is_a_factor_longer_than_the_one_before",
        "test_a_replica_that_rests_leaves_its_place_to_the_next",
    ),
    **not_run(
        "probes count whole seconds, and of a copy that is over a cluster forgets that it was ready",
        "test_a_check_that_takes_too_long_has_failed",
        "test_a_copy_that_stops_being_ready_is_told_of",
    ),
    **not_run(
        "every pod has an address of its own, which is not that of its node, nor the loopback",
        "test_a_check_by_a_connection_says_when_a_copy_is_ready",
        "test_a_check_by_a_request_asks_for_the_path_with_its_headers",
        "test_a_port_by_name_is_a_free_one_for_each_copy",
        "test_an_exposed_port_is_reached_from_outside_the_job",
    ),
    **not_run(
        "files of steps and secrets are mounted: read only, and readable to everybody inside",
        "test_steps_come_before_the_before_hook",
        "test_a_secret_may_be_a_file_at_a_path",
        "test_a_file_of_the_engine_that_holds_a_secret_is_closed_to_others",
    ),
    **not_run(
        "when things that happen within a second happened, a cluster does not tell apart",
        "test_a_quorum_counts_only_the_replicas_it_names",
    ),
    **not_run(
        "who drives a job waits for its moment; `why` says only that it is driven",
        "test_a_job_does_not_start_before_its_earliest_moment",
    ),
    **not_run(
        "a Job does not see that its goal is out of reach, and fails when all of it has ended",
        "test_a_failed_leader_fails_the_task_and_the_others_are_stopped",
    ),
    **not_run(
        "that a pod which had its node alone is gone, the scheduler of a cluster may notice in five minutes",
        "test_an_exclusive_placement_shares_no_node_with_other_jobs",
        "test_an_exclusive_node_is_shared_with_nobody",
    ),
    **not_run(
        "a task with files of steps works in a folder of its own pod",
        "test_axes_are_filled_in_wherever_they_may_stand",
    ),
    **not_run(
        "what these ask for is there: schedulers, identities, devices, windows, classes of storage",
        "test_a_refusal_names_every_feature_and_who_asked_for_it",
        "test_one_refused_document_of_a_file_keeps_the_others_from_starting",
        "test_values_of_a_feature_that_ask_for_too_much_are_refused_too",
    ),
    **not_run(
        "a pod that has started its command again does not remember how it ended before",
        "test_restart_on_failure_starts_a_copy_again_in_place",
    ),
    **not_run(
        "a volume is mounted over what is there, which only the pod sees",
        "test_what_is_already_where_a_volume_should_be_is_not_touched",
    ),
    **not_run(
        "of a group that waits for its next try, what was in it is forgotten",
        "test_a_group_that_waits_for_its_next_try_can_be_cancelled",
    ),
    **not_run(
        "a hold takes back what runs, and nothing that is over",
        "test_a_requeued_group_goes_back_as_a_whole",
    ),
}
"""A plain cluster, with nothing but a kubeconfig."""

_OF_ANY_CLUSTER = (
    "a cluster keeps standard output and standard error as one",
    "a command is the first process of its container, which no signal from inside reaches",
    "what the submitter's shell has in its environment stays there",
    "copies know each other by the names of their pods, not by those of nodes",
    "probes count whole seconds, and of a copy that is over a cluster forgets that it was ready",
    "every pod has an address of its own, which is not that of its node, nor the loopback",
    "files of steps and secrets are mounted: read only, and readable to everybody inside",
    "a cluster waits for what it does not have yet; `why` says so",
)
MANAGED: dict[str, Difference] = {
    **{name: found for name, found in DIRECT.items() if found.why in _OF_ANY_CLUSTER},
    **not_run(
        "a cluster does not keep what a hook before the stop of a container writes",
        "test_on_stop_runs_first_when_a_copy_is_asked_to_stop",
    ),
    **not_run(
        "an image that cannot be had is asked for again, for ten minutes",
        "test_an_image_that_cannot_be_had_is_said",
    ),
    **not_run(
        "files of steps are mounted in a folder of their own, which no other task sees",
        "test_axes_are_filled_in_wherever_they_may_stand",
    ),
    **not_run(
        "a level that the settings do not know is refused as something that cannot be done",
        "test_spreading_over_a_level_that_no_node_has_is_refused",
        "test_being_apart_by_a_level_that_no_node_has_is_refused",
    ),
    **not_run(
        "what this engine refuses is other than what the scenario counts on",
        "test_a_refusal_names_every_feature_and_who_asked_for_it",
        "test_values_of_a_feature_that_ask_for_too_much_are_refused_too",
    ),
    **not_run(
        "the lab's cluster makes no volumes, and a node mounts what it finds",
        "test_room_made_for_a_copy_is_empty_writable_and_gone_with_it",
        "test_a_folder_of_the_host_is_made_where_that_is_asked_for",
        "test_what_is_already_where_a_volume_should_be_is_not_touched",
    ),
    **refused(
        "there is no folder of submission on a cluster",
        "test_cwd_says_where_a_command_runs_and_a_relative_one_is_below",
        "test_a_working_directory_that_does_not_exist_is_said",
    ),
    **refused(
        "the service does not see your files", "test_variables_come_from_secrets_configurations_and_files"
    ),
    **refused(
        "a cluster has resources with full names",
        "test_a_rare_feature_works_or_is_refused_by_its_name[shape.site-type]",
    ),
}
"""A cluster that a service schedules: what follows from pods, and not from who plans them."""

_OF_BATCH: dict[str, Difference] = {
    **refused(
        "on the document nobody would count it",
        "test_the_documents_retries_run_the_whole_job_again",
        "test_the_documents_retries_are_for_the_failures_that_are_meant",
        "test_a_success_policy_ends_a_job_with_tasks_before_a_gate",
        "test_a_success_policy_of_the_document_stops_services_too",
        "test_a_job_can_be_cancelled_while_it_waits_to_start_over",
        "test_a_cancelled_group_is_not_tried_again",
        "test_the_documents_parallelism_counts_what_runs_in_groups",
        "test_the_documents_parallelism_counts_the_tasks_of_the_whole_job",
        "test_services_do_not_count_against_the_documents_parallelism",
        "test_the_documents_max_failed_counts_the_replicas_of_all_tasks",
        "test_a_task_that_failed_stays_failed_when_its_failure_decides_the_job",
        "test_a_task_that_succeeded_stays_succeeded_when_its_success_decides_the_job",
        "test_the_documents_completions_count_the_replicas_of_all_tasks",
        "test_the_documents_success_ends_the_job_early",
        "test_a_failure_that_was_made_good_is_not_the_end_of_the_job[by a retry of the job]",
    ),
    **not_run(
        "the manager plans by itself, and its estimate is no promise",
        "test_who_waits_is_promised_a_start_and_starts_by_then",
        "test_a_limit_that_is_used_up_breaks_no_promise",
        "test_a_short_job_passes_a_large_one_that_is_blocked_and_a_long_one_does_not",
        "test_more_time_is_granted_only_as_far_as_nobody_is_delayed",
        "test_behind_something_without_a_limit_nothing_is_promised",
        "test_a_cancelled_job_makes_room_in_the_plan",
        "test_every_factor_of_a_priority_is_told",
        "test_an_interactive_queue_keeps_the_order_of_submission",
        "test_a_job_of_higher_priority_goes_before_one_that_waited_longer",
        "test_jobs_of_one_priority_go_in_the_order_of_submission",
        "test_a_task_of_higher_priority_goes_before_its_siblings_that_wait",
        "test_groups_at_the_top_start_after_the_tasks_in_the_order_of_the_file",
        "test_tasks_start_in_the_order_written_without_waiting",
    ),
    **refused(
        "nothing is put in the way of others on a node",
        "test_a_secret_may_be_a_file_at_a_path",
    ),
    **refused(
        "there is no secret `no-such-secret`",
        "test_a_secret_that_does_not_exist_is_said_before_the_command_runs",
    ),
    **not_run(
        "a replica that rests keeps its place",
        "test_a_replica_that_rests_leaves_its_place_to_the_next",
    ),
}
"""What follows from scripts that nobody drives, whoever the manager is."""

SLURM: dict[str, Difference] = {
    **_OF_BATCH,
    **not_run(
        "the lab's Slurm deals memory out, and holds nobody to it",
        "test_a_copy_that_uses_more_memory_than_it_has_is_ended",
    ),
}

FLUX: dict[str, Difference] = {
    **_OF_BATCH,
    **not_run(
        "Flux deals out no memory, and holds nobody to it",
        "test_a_copy_that_uses_more_memory_than_it_has_is_ended",
    ),
    **not_run(
        "tasks of a group are submitted side by side: of two that need all of it chance says which is first",
        "test_a_task_without_resources_gets_all_of_its_group",
    ),
    **not_run(
        "until some commands of Flux have answered, a job that has less than four seconds is over",
        "test_a_job_may_be_cancelled_twice",
        "test_time_stands_still_for_a_frozen_copy",
        "test_more_time_can_be_given_to_what_runs",
        "test_more_time_can_be_given_to_one_task",
    ),
}

DIFFERENCES: dict[str, dict[str, Difference]] = {
    "kubernetes-direct": DIRECT,
    "kubernetes-managed": MANAGED,
    "slurm": SLURM,
    "flux": FLUX,
}


def difference(engine: str, scenario: str, whole: str) -> Difference | None:
    """What is known of a scenario there; `whole` is its name with its parameters but the engine."""
    known = DIFFERENCES.get(engine, {})
    return known.get(whole) or known.get(scenario)
