"""What every test may use."""

import os
import signal

from hypothesis import settings

from jobman.garbage import thaw

pytest_plugins = ["pytester", "tests.components"]

# No test asserts a time, so none has a deadline; where CI is set, the examples are the same in every run.
# The quick run is content with a few of them.
_IS_QUICK = os.environ.get("JOBMAN_TESTS") == "quick"
_USUAL = settings.get_profile("ci" if "CI" in os.environ else "default")
_MOST = 15 if _IS_QUICK else _USUAL.max_examples
settings.register_profile("house", _USUAL, deadline=None, max_examples=_MOST)
settings.load_profile("house")

# All of it is slow, and so is thinking of its requests, which every process does before its first test.
collect_ignore = ["control/api/test_contract.py"] if _IS_QUICK else []

# Whoever starts the tests behind a shell's `&` has them ignore Ctrl-C, and so would every command they start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_runtest_teardown() -> None:
    """What a service in this process froze is of no use to the next test."""
    thaw()
