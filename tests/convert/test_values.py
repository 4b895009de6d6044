"""Values of options mean what they mean to Slurm."""

import pytest

from jobman.convert.values import (
    Indexes,
    Wrong,
    alarm_of,
    duration_text,
    gpus_of,
    gres_of,
    indexes_of,
    mebibytes_of,
    nodes_of,
    seconds_of,
    size_text,
)


@pytest.mark.parametrize(
    ("text", "duration"),
    [
        ("30", "30m"),
        ("90:30", "1h30m30s"),
        ("1:30:00", "1h30m"),
        ("1-", "1d"),
        ("2-12", "2d12h"),
        ("1-2:3", "1d2h3m"),
        ("1-02:03:04", "1d2h3m4s"),
        ("00:00:20", "20s"),
    ],
)
def test_a_time_limit_in_all_its_forms(text, duration):
    seconds = seconds_of(text)
    assert seconds is not None
    assert duration_text(seconds) == duration


@pytest.mark.parametrize("text", ["0", "UNLIMITED", "infinite", "-1", "0:0"])
def test_no_limit_at_all(text):
    assert seconds_of(text) is None


@pytest.mark.parametrize("text", ["", "abc", "1h", "1:2:3:4", "1.5", "1-2-3", ":5"])
def test_what_is_no_time(text):
    with pytest.raises(Wrong):
        seconds_of(text)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("100", "100Mi"),
        ("4G", "4Gi"),
        ("4GB", "4Gi"),
        ("2t", "2Ti"),
        ("512K", "1Mi"),
        ("1024M", "1Gi"),
        ("1536M", "1536Mi"),
    ],
)
def test_a_size_is_in_megabytes_without_a_unit(text, size):
    assert size_text(mebibytes_of(text)) == size


@pytest.mark.parametrize("text", ["", "4.5G", "G", "-1", "4X"])
def test_what_is_no_size(text):
    with pytest.raises(Wrong):
        mebibytes_of(text)


@pytest.mark.parametrize(("text", "nodes"), [("2", (2, 2)), ("2-4", (2, 4))])
def test_nodes_are_a_number_or_a_range(text, nodes):
    assert nodes_of(text) == nodes


@pytest.mark.parametrize("text", ["0", "4-2", "x", "2-", ""])
def test_what_is_no_number_of_nodes(text):
    with pytest.raises(Wrong):
        nodes_of(text)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("0-3", Indexes((0, 1, 2, 3), None)),
        ("0-9%4", Indexes(tuple(range(10)), 4)),
        ("1,3,7", Indexes((1, 3, 7), None)),
        ("0-20:5", Indexes((0, 5, 10, 15, 20), None)),
        ("3,1,1", Indexes((1, 3), None)),
        ("1-3,7%2,9", Indexes((1, 2, 3, 7, 9), 2)),
        ("[1-2]", Indexes((1, 2), None)),
    ],
)
def test_the_numbers_of_an_array(text, found):
    assert indexes_of(text) == found


@pytest.mark.parametrize("text", ["", "5-1", "a", "1-2-3", "1-9:0", "1,,2", "0-99999999"])
def test_what_are_no_numbers_of_an_array(text):
    with pytest.raises(Wrong):
        indexes_of(text)


@pytest.mark.parametrize(
    ("text", "runs"),
    [("7", [(7, 1, 1)]), ("1,3,7", [(1, 2, 2), (7, 1, 1)]), ("0-20:5,21", [(0, 5, 5), (21, 1, 1)])],
)
def test_numbers_are_kept_as_runs(text, runs):
    found = indexes_of(text)
    assert found.runs == runs
    assert [first + step * n for first, step, count in runs for n in range(count)] == list(found.numbers)


@pytest.mark.parametrize(
    ("text", "alarm"),
    [
        ("USR1", ("USR1", 60, False)),
        ("SIGTERM@10", ("TERM", 10, False)),
        ("B:10@120", ("USR1", 120, True)),
        ("R:INT", ("INT", 60, False)),
    ],
)
def test_a_signal_before_the_end(text, alarm):
    assert alarm_of(text) == alarm


@pytest.mark.parametrize("text", ["", "NOSUCH", "USR1@", "999"])
def test_what_is_no_signal(text):
    with pytest.raises(Wrong):
        alarm_of(text)


def test_generic_resources():
    assert gres_of("gpu:2") == [("gpu", "", 2)]
    assert gres_of("gpu:a100:2,nic") == [("gpu", "a100", 2), ("nic", "", 1)]
    assert gres_of("gpu:v100") == [("gpu", "v100", 1)]
    assert gres_of("gpu:a100:1(S:0)") == [("gpu", "a100", 1)]
    assert gres_of("none") == []


@pytest.mark.parametrize(
    ("text", "kind", "number"), [("2", "", 2), ("a100:3", "a100", 3), ("a100", "a100", 1)]
)
def test_a_number_of_gpus(text, kind, number):
    assert gpus_of(text) == ("gpu", kind, number)
