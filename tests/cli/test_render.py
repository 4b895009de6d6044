"""`jobman render`: what a document becomes on a cluster, as text, as data and as files."""

from pathlib import Path

import pytest
import yaml

from tests.engines.kubernetes.cluster import a_namespace, image, kubectl, need_job_sets, on_a_real_cluster

EXAMPLES = Path(__file__).parents[2] / "examples"
ONE = "resources: {type: slot, count: 1}"
HELLO = f"version: 1\nname: hello\nimage: 'a:1'\ntasks: [{{name: say, command: [echo, hello], {ONE}}}]\n"
TWO = (
    "version: 1\nname: pair\nimage: 'a:1'\ntasks:\n"
    f"- {{name: first, command: [echo], {ONE}}}\n- {{name: second, command: [echo], {ONE}}}\n"
)
CHAIN = TWO.replace("second,", "second, depends_on: first,")
REFUSED = HELLO.replace("name: say,", "name: say, suspend: freeze, steps: [{name: stage, path: nowhere}],")


@pytest.fixture
def render(jobman):
    def run(*arguments, **more):
        return jobman("render", "-e", "kubernetes", *arguments, **more)

    return run


def objects(answer):
    assert (answer.code, answer.err) == (0, "")
    return list(yaml.load_all(answer.out, Loader=yaml.CSafeLoader))


def kinds(found):
    return [(each["kind"], each["metadata"]["name"]) for each in found]


# -- the objects --------------------------------------------------------------------------------------------


def test_a_single_task_is_a_job_that_carries_its_document(render, write):
    (job,) = objects(render(write(HELLO)))
    metadata = job["metadata"]
    assert (job["kind"], metadata["labels"]["jobman.io/name"]) == ("Job", "hello")
    assert metadata["name"] == f"hello-{metadata['labels']['jobman.io/job'][:6]}"
    assert metadata["annotations"]["jobman.io/document"] == HELLO
    container = job["spec"]["template"]["spec"]["containers"][0]
    assert (container["image"], container["command"]) == ("a:1", ["echo", "hello"])


def test_a_line_before_each_object_says_whose_it_is(render, write):
    answer = render(write(TWO))
    assert [line for line in answer.out.splitlines() if line.startswith("# ")] == [
        "# the job",
        "# the job",
        "# task first",
        "# task second",
    ]
    assert [kind for kind, _ in kinds(objects(answer))] == ["ConfigMap", "Service", "Job", "Job"]


def test_the_same_document_is_rendered_the_same_under_any_name(render, write):
    first = render(write(HELLO, "a.yaml"))
    assert first == render(write(HELLO, "b.yaml"))
    assert first.out != render(write(HELLO.replace("[echo, hello]", "[echo]"))).out


def test_the_id_of_the_job_is_the_start_of_the_digest_that_explain_shows(jobman, render, write):
    name = write(HELLO)
    (job,) = objects(render(name))
    digest = jobman("explain", name, "-o", "json").data["digest"]
    assert digest.startswith(f"sha256:{job['metadata']['labels']['jobman.io/job']}")


def test_without_a_namespace_no_object_names_one(render, write):
    assert not any("namespace" in each["metadata"] for each in objects(render(write(TWO))))


@pytest.mark.parametrize("option", ["-n", "--namespace"])
def test_every_object_is_in_the_namespace_that_is_given(render, write, option):
    found = objects(render(write(TWO), option, "lab"))
    assert {each["metadata"]["namespace"] for each in found} == {"lab"}


def test_several_documents_are_all_rendered(render, write):
    found = objects(render(write(f"{HELLO}---\n{HELLO.replace('name: hello', 'name: other')}")))
    assert [each["metadata"]["labels"]["jobman.io/name"] for each in found] == ["hello", "other"]


def test_a_document_that_stands_in_a_file_twice_is_two_jobs(render, write):
    one, other = objects(render(write(f"{HELLO}---\n{HELLO}")))
    assert one["metadata"]["name"] != other["metadata"]["name"]


def test_standard_input_can_be_rendered(render, write):
    assert objects(render("-", stdin=HELLO)) == objects(render(write(HELLO)))


def test_set_gives_parameters(render, write):
    name = write(HELLO.replace("name: hello\n", "parameters: {who: you}\n").replace("hello]", "'{{who}}']"))
    (job,) = objects(render(name, "--set", "who=me"))
    assert job["spec"]["template"]["spec"]["containers"][0]["command"] == ["echo", "me"]


def test_the_image_of_the_settings_is_used_where_a_document_names_none(jobman, write):
    settings = write("default_image: 'b:2'\n", "settings.yaml")
    name = write(HELLO.replace("image: 'a:1'\n", ""))
    (job,) = objects(jobman("-s", settings, "render", "-e", "kubernetes", name))
    assert job["spec"]["template"]["spec"]["containers"][0]["image"] == "b:2"


def test_the_prefix_of_the_settings_stands_before_an_image_without_a_registry(jobman, write):
    settings = write("image_prefix: harbor.example.org/lab/\n", "settings.yaml")
    (job,) = objects(jobman("-s", settings, "render", "-e", "kubernetes", write(HELLO)))
    assert job["spec"]["template"]["spec"]["containers"][0]["image"] == "harbor.example.org/lab/a:1"


def test_json_is_a_list_that_kubectl_takes(render, write):
    name = write(TWO)
    data = render(name, "-o", "json").data
    assert (data["apiVersion"], data["kind"]) == ("v1", "List")
    assert data["items"] == objects(render(name))


def test_yaml_is_what_is_printed_anyway(render, write):
    assert render(write(TWO), "-o", "yaml") == render(write(TWO))


# -- files of the document ----------------------------------------------------------------------------------


def staged(render, write, steps):
    (files, *_) = objects(render(write(HELLO.replace("name: say,", f"name: say, {steps},"))))
    return sorted(files["data"].values()) if files["kind"] == "ConfigMap" else []


def test_files_to_stage_travel_with_the_job(render, write):
    write("one\n", "one.txt")
    assert staged(render, write, "steps: [{name: stage, path: one.txt}]") == ["one\n"]


def test_a_folder_travels_with_all_that_is_in_it(render, write):
    Path("data/inner").mkdir(parents=True)
    write("one\n", "data/one.txt")
    write("two\n", "data/inner/two.txt")
    assert staged(render, write, "steps: [{name: stage, path: data}]") == ["one\n", "two\n"]


def test_each_replica_of_a_matrix_gets_the_file_of_its_values(render, write):
    write("one\n", "a.txt")
    write("two\n", "b.txt")
    steps = "matrix: {x: [a, b]}, steps: [{name: stage, path: '{{x}}.txt'}]"
    found = objects(render(write(HELLO.replace("name: say,", f"name: say, {steps},"))))
    contents = [each["data"] for each in found if each["kind"] == "ConfigMap" and "data" in each]
    assert contents == [{"file-0": "one\n"}, {"file-0": "two\n"}]


@pytest.mark.parametrize("path", ["nowhere", "circle"])
def test_what_cannot_be_brought_is_refused(render, write, path):
    Path("circle").mkdir()
    Path("circle/again").symlink_to("../circle")
    answer = render(write(HELLO.replace("name: say,", f"name: say, steps: [{{name: stage, path: {path}}}],")))
    assert (answer.code, answer.out) == (4, "")
    assert f"step.stage (say): `{path}` is not at hand; submit where it is" in answer.err


def test_a_file_that_is_too_large_is_refused_without_being_read_to_its_end(render, write):
    with Path("large").open("wb") as file:
        file.truncate(10**12)
    answer = render(write(HELLO.replace("name: say,", "name: say, steps: [{name: stage, path: large}],")))
    assert answer.code == 4
    assert "files of more than 900 kB do not travel" in answer.err


# -- into a folder ------------------------------------------------------------------------------------------


def test_each_object_gets_a_file_in_the_order_in_which_they_are_created(render, write):
    answer = render(write(TWO), "--to", "out/here")
    assert (answer.code, answer.err) == (0, "")
    assert answer.out.split() == sorted(map(str, Path("out/here").iterdir()))
    texts = [Path(path).read_text() for path in answer.out.split()]
    assert "".join(texts) == render(write(TWO)).out
    names = [Path(path).name.split("-")[:3] for path in answer.out.split()]
    assert names == [
        [str(n), kind, "pair"] for n, kind in enumerate(("configmap", "service", "job", "job"), 1)
    ]


def test_the_same_folder_can_be_written_again(render, write):
    first = render(write(TWO), "--to", "out")
    assert render(write(TWO), "--to", "out") == first
    assert render(write(TWO), "--to", "out", "-o", "json").data == first.out.split()


def test_a_folder_with_other_files_is_left_as_it_is(render, write):
    render(write(TWO), "--to", "out")
    before = sorted(Path("out").iterdir())
    answer = render(write(HELLO), "--to", "out")
    assert (answer.code, answer.out) == (1, "")
    assert answer.err.startswith("jobman: out holds other files, such as 1-configmap-pair-")
    assert sorted(Path("out").iterdir()) == before


def test_a_folder_that_cannot_be_written_gives_a_clear_error(render, write):
    answer = render(write(HELLO), "--to", write("", "a-file"))
    assert (answer.code, answer.out, answer.err) == (1, "", "jobman: cannot write a-file: File exists\n")


# -- what cannot be had -------------------------------------------------------------------------------------


def test_a_refusal_names_unit_reason_and_what_to_do(render, write):
    answer = render(write(REFUSED))
    assert (answer.code, answer.out) == (4, "")
    assert answer.err.splitlines() == [
        "jobman: the kubernetes engine cannot do what is asked",
        "        suspend.freeze (say): pods cannot be frozen; use `suspend: requeue`",
        "        step.stage (say): `nowhere` is not at hand; submit where it is",
        "        `jobman features` lists what each engine can do",
    ]


def test_of_several_documents_all_refusals_are_told_and_nothing_is_rendered(render, write):
    name = write(
        f"{HELLO}---\n{REFUSED}---\n{HELLO.replace('name: hello', 'name: bare').replace('image:', 'owner:')}"
    )
    answer = render(name, "--to", "out")
    assert (answer.code, answer.out, Path("out").exists()) == (4, "", False)
    assert "suspend.freeze (hello: say): " in answer.err
    assert "image (bare: say): " in answer.err


def test_a_refusal_is_told_as_data_where_data_is_asked_for(render, write):
    answer = render(write(REFUSED), "-o", "json")
    assert (answer.code, answer.err, answer.data["code"]) == (4, "", "cannot")
    assert [(each["feature"], each["units"]) for each in answer.data["refused"]] == [
        ("suspend.freeze", ["say"]),
        ("step.stage", ["say"]),
    ]


def test_what_needs_somebody_to_drive_it_is_rendered_with_a_warning(render, write):
    answer = render(write(CHAIN))
    assert answer.code == 0
    assert answer.out.count("\nkind: Job\n") == 2
    assert answer.err.splitlines() == [
        "jobman: pair: whoever only creates these objects starts all at once, and loses this",
        "        depends_on.success (second): something must start each in turn",
    ]


def test_a_graph_is_one_object_where_the_cluster_makes_job_sets(render, write):
    answer = render(write(CHAIN), "--job-set")
    assert (answer.code, answer.err) == (0, "")
    (found,) = yaml.safe_load_all(answer.out)
    assert (found["kind"], [each["name"] for each in found["spec"]["replicatedJobs"]]) == (
        "JobSet",
        ["first", "second"],
    )
    refused = render(write(CHAIN.replace("depends_on: first", "when: always")), "--job-set")
    assert (refused.code, refused.out) == (4, "")
    assert "when.always" in refused.err


@pytest.mark.parametrize("engine", [(), ("-e", "local")])
def test_for_this_machine_there_is_nothing_to_render(jobman, write, engine):
    answer = jobman("render", write(HELLO), *engine)
    assert (answer.code, answer.out) == (4, "")
    assert "the engine local reads documents as they are: there is nothing to render" in answer.err
    assert "`-e kubernetes`" in answer.err


def test_the_engine_may_be_named_before_the_command(jobman, render, write):
    name = write(TWO)
    assert jobman("-e", "kubernetes", "render", name) == render(name)


def test_a_wrong_document_is_told_as_check_tells_it(jobman, render, write):
    name = write(HELLO.replace("count: 1", "count: 0"))
    answer = render(name)
    assert (answer.code, answer.out) == (3, "")
    assert answer.err.splitlines() == jobman("check", name).out.splitlines()[:-1]


# -- a real cluster -----------------------------------------------------------------------------------------


@pytest.mark.slow
@on_a_real_cluster
def test_a_real_cluster_takes_what_is_rendered_of_every_example(jobman, write, monkeypatch, tmp_path):
    settings = tmp_path / "work" / write(f"default_image: '{image()}'\n", "settings.yaml")
    monkeypatch.chdir(EXAMPLES)
    rendered = rendered_examples(jobman, settings)
    assert {"hello", "mpi", "matrix", "showcase", "volumes"} <= set(rendered)
    with a_namespace() as namespace:
        dry = ("create", "--dry-run=server", "--validate=strict", "-n", namespace, "-f")
        kubectl(*dry, "-", stdin="".join(rendered.values()))
        jobman("-s", settings, "render", "-e", "kubernetes", "mpi.yaml", "--to", tmp_path / "out")
        created = kubectl(*dry, str(tmp_path / "out"))
        assert [line.split("/")[0] for line in created.splitlines()] == ["service", "job.batch"]
        listed = jobman("-s", settings, "render", "-e", "kubernetes", "mpi.yaml", "-o", "json")
        assert kubectl(*dry, "-", stdin=listed.out) == created


@pytest.mark.slow
@on_a_real_cluster
def test_a_real_cluster_takes_the_sets_that_are_rendered(jobman, write, monkeypatch, tmp_path):
    need_job_sets()
    settings = tmp_path / "work" / write(f"default_image: '{image()}'\n", "settings.yaml")
    monkeypatch.chdir(EXAMPLES)
    rendered = rendered_examples(jobman, settings, "--job-set")
    assert {"hello", "mpi"} <= set(rendered)
    with a_namespace() as namespace:
        dry = ("create", "--dry-run=server", "--validate=strict", "-n", namespace, "-f", "-")
        kubectl(*dry, stdin="".join(rendered.values()))


def rendered_examples(jobman, settings, *options):
    """The objects of each example that can be rendered, by its name."""
    rendered = {}
    for path in sorted(EXAMPLES.glob("*.yaml")):
        answer = jobman("-s", settings, "render", "-e", "kubernetes", *options, path.name)
        assert answer.code in (0, 4), answer.err
        if answer.code == 0:
            rendered[path.stem] = answer.out
    return rendered
