"""Dask's distributed: a scheduler and two worker processes of one thread each."""

from __future__ import annotations

from distributed import Client, LocalCluster  # type: ignore[import-not-found,unused-ignore]

from bench._task_peers.clock import WORKERS, measure, nothing, tell


def main() -> None:
    """Every task is another one for Dask: nothing is answered from what it knows."""
    cluster = LocalCluster(n_workers=WORKERS, threads_per_worker=1, processes=True, dashboard_address=None)
    with cluster, Client(cluster) as client:
        tell(
            measure(
                lambda tasks: len(client.gather(client.map(nothing, range(tasks), pure=False))),
                lambda: client.submit(nothing, pure=False).result(),
            )
        )


if __name__ == "__main__":
    main()
