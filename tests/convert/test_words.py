"""Lines of options are split as sbatch splits them, commands as a shell would."""

import pytest

from jobman.convert.words import Unclosed, expanded, sbatch_words, shell_words


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("", []),
        ("   # nothing here", []),
        ("-n 4", ["-n", "4"]),
        ("\t-n4   -N 2\t", ["-n4", "-N", "2"]),
        ("-n 4 # four of them", ["-n", "4"]),
        ("--comment=a#b", ["--comment=a"]),
        ('--comment="a#b c" # -n 4', ["--comment=a#b c"]),
        (r"--comment='a\'b' -n 3", ["--comment=a'b", "-n", "3"]),
        (r"--comment=a\#c\\d", ["--comment=a#c\\d"]),
        (r"--comment=a\ b", ["--comment=a", "b"]),
        (r'--comment="a\ b"', ["--comment=a b"]),
        ('-J"a b"', ["-Ja b"]),
        ("--comment='say \"hi\"'", ['--comment=say "hi"']),
        ('""', [""]),
    ],
)
def test_a_line_is_split_as_sbatch_does(line, words):
    assert [word.text for word in sbatch_words(line, 0)] == words


def test_words_know_where_they_stand():
    assert sbatch_words("#SBATCH  -n 4", 7) == [("-n", 9, 11), ("4", 12, 13)]


@pytest.mark.parametrize(("line", "quote", "start"), [('-J "a', '"', 3), ("-J 'a\"", "'", 3)])
def test_a_quote_without_its_partner_is_an_error(line, quote, start):
    with pytest.raises(Unclosed) as found:
        sbatch_words(line, 0)
    assert (found.value.quote, found.value.start) == (quote, start)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("srun ./a.out", ["srun", "./a.out"]),
        ("srun ./a 'b c' \"d $e\" f\\ g # h", ["srun", "./a", "b c", "d $e", "f g"]),
        ("srun './a;b|c'", ["srun", "./a;b|c"]),
    ],
)
def test_a_plain_command_is_split_as_a_shell_would(line, words):
    found = shell_words(line)
    assert found is not None
    assert [word.text for word in found] == words


@pytest.mark.parametrize(
    "line",
    ["a | b", "a; b", "a && b", "a &", "a > b", "a < b", "a $(b)", "a `b`", 'a "$(b)"', "(a)", "a 'b"],
)
def test_what_a_shell_does_more_with_is_no_plain_command(line):
    assert shell_words(line) is None


def test_single_quotes_keep_a_shell_from_expanding():
    assert expanded("a '$b' \"$c '$d'\" \\'$e") == "a '' \"$c '$d'\" \\'$e".replace("''", "'")
