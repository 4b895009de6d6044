"""What every test may use."""

import os
import signal

from hypothesis import settings

pytest_plugins = ["pytester", "tests.components"]

# No test asserts a time, so none has a deadline; where CI is set, the examples are the same in every run.
settings.register_profile(
    "house", settings.get_profile("ci" if "CI" in os.environ else "default"), deadline=None
)
settings.load_profile("house")

# Whoever starts the tests behind a shell's `&` has them ignore Ctrl-C, and so would every command they start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
