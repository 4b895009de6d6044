"""The log of a service."""

import subprocess
import sys
from pathlib import Path

from jobman.control import log_file


def test_a_long_log_is_put_aside_and_a_new_one_begun(tmp_path: Path) -> None:
    path = tmp_path / "service.log"
    path.write_bytes(b"x" * (log_file._LONGEST + 1))
    code = f"""
import os
from pathlib import Path
from jobman.control.log_file import keep_small
log = os.open({str(path)!r}, os.O_WRONLY | os.O_APPEND)
os.dup2(log, 2)
keep_small(Path({str(path)!r}))
os.write(2, b"new\\n")
"""
    subprocess.run([sys.executable, "-c", code], check=True)
    assert path.read_text() == "new\n"
    assert path.stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "service.log.1").stat().st_size > log_file._LONGEST


def test_a_short_log_and_one_that_is_gone_are_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "service.log"
    log_file.keep_small(path)
    path.write_text("short\n")
    log_file.keep_small(path)
    assert path.read_text() == "short\n"
