"""What every test may use."""

import os

from hypothesis import settings

pytest_plugins = ["pytester", "tests.components"]

# No test asserts a time, so none has a deadline; where CI is set, the examples are the same in every run.
settings.register_profile(
    "house", settings.get_profile("ci" if "CI" in os.environ else "default"), deadline=None
)
settings.load_profile("house")
