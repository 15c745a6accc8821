# SPDX-License-Identifier: Apache-2.0
"""Objects as arguments and results of Dask and Ray, on this machine and the loopback address."""

from __future__ import annotations

import os
import traceback
from pathlib import Path
from typing import Any

import cluster_tasks
import pytest

HERE = str(Path(__file__).resolve().parent)


@pytest.fixture(scope="module")
def client() -> Any:
    distributed = pytest.importorskip("distributed", reason="distributed is not installed")
    import dask

    # Workers that are started, not forked, find the tasks by this.
    os.environ["PYTHONPATH"] = os.pathsep.join([HERE, os.environ.get("PYTHONPATH", "")])
    dask.config.set({"distributed.comm.timeouts.connect": "120s"})
    with (
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            host="127.0.0.1",
            dashboard_address=None,
        ) as cluster,
        distributed.Client(cluster, timeout=120) as made,
    ):
        yield made


def test_dask(client: Any) -> None:
    cluster_tasks.check(
        lambda function, *arguments: client.submit(function, *arguments, pure=False).result()
    )


def test_dask_keeps_results_on_the_workers(client: Any) -> None:
    node = client.submit(cluster_tasks.ring, cluster_tasks.Node(1), pure=False)
    again = client.submit(cluster_tasks.ring, node, pure=False)
    assert again.result().child.value.child.child.value == 2


def test_an_error_of_cpp_arrives_from_dask(client: Any) -> None:
    future = client.submit(cluster_tasks.fail, "raised in C++", pure=False)
    with pytest.raises(ValueError, match=r"raised in C\+\+") as caught:
        future.result()
    frames = "".join(traceback.format_tb(caught.value.__traceback__))
    assert "in fail" in frames
    assert "testing" in frames  # of C++


def test_ray(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    ray = pytest.importorskip("ray", reason="ray is not installed")
    path = os.pathsep.join([HERE, os.environ.get("PYTHONPATH", "")])
    ray.init(
        num_cpus=2,
        include_dashboard=False,
        _node_ip_address="127.0.0.1",
        runtime_env={"env_vars": {"PYTHONPATH": path}},
        log_to_driver=False,
    )
    try:

        def submit(function: Any, *arguments: Any) -> Any:
            task = ray.remote(lambda *given: function(*given))  # noqa: PLW0108  it wants a def
            return ray.get(task.remote(*arguments))

        cluster_tasks.check(submit)
        with pytest.raises(ValueError, match=r"raised in C\+\+"):
            submit(cluster_tasks.fail, "raised in C++")
    finally:
        ray.shutdown()
