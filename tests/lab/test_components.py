"""A component that is said to be ready does its work."""

import os
import subprocess
from collections.abc import Mapping
from uuid import uuid4

import psycopg
import pytest
from psycopg.sql import SQL, Identifier


def answer(*command: str, environment: Mapping[str, str] | None = None) -> str:
    everything = {**os.environ, **(environment or {})}
    return subprocess.run(command, env=everything, check=True, capture_output=True, text=True).stdout


@pytest.mark.component("postgres")
def test_postgres_answers_and_lets_databases_be_made():
    name = Identifier(f"lab_{uuid4().hex}")
    url = os.environ["JOBMAN_LAB_POSTGRES"].replace("+psycopg", "")
    with psycopg.connect(url, autocommit=True) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)
        connection.execute(SQL("CREATE DATABASE {}").format(name))
        connection.execute(SQL("DROP DATABASE {}").format(name))


@pytest.mark.slow
@pytest.mark.component("slurm")
def test_slurm_runs_a_command_on_two_nodes_and_a_batch_job_to_its_end():
    cluster = {"SLURM_CONF": os.environ["JOBMAN_LAB_SLURM_CONF"]}
    command = ["srun", "--nodes=2", "sh", "-c", "echo $SLURMD_NODENAME"]
    assert len(set(answer(*command, environment=cluster).split())) == 2
    answer("sbatch", "--wait", "--output=/dev/null", "--wrap=true", environment=cluster)


@pytest.mark.component("podman")
def test_podman_runs_a_command_in_the_image():
    podman, image = os.environ["JOBMAN_LAB_PODMAN"], os.environ["JOBMAN_LAB_IMAGE"]
    assert answer(podman, "run", "--rm", "--network=none", image, "echo", "a  b", "") == "a  b \n"
    failing = subprocess.run([podman, "run", "--rm", "--network=none", image, "sh", "-c", "exit 7"])
    assert failing.returncode == 7
