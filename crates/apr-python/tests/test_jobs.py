"""Jobs: tasks by executors of `concurrent.futures`, Dask, Ray and Spark, workers that are killed, what is refused."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

import apr
import apr.jobs

COMMAND = ["convert", "{in}", "{out}.gguf", "--type", "q8_0", "--split-max-tensors", "4"]


def contents(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in sorted(folder.iterdir()) if file.is_file()}


@pytest.fixture
def model(vectors: Path, tmp_path: Path) -> Path:
    """A model folder, and beside it what the command alone makes of it."""
    folder = tmp_path / "llama"
    folder.symlink_to(vectors / "hf" / "Tiny-Llama2-110K-Chat", target_is_directory=True)
    (tmp_path / "alone").mkdir()
    apr.convert(folder, tmp_path / "alone" / "llama.gguf", type="q8_0", split_max_tensors=4)
    return folder


@pytest.mark.parametrize("executor", [ThreadPoolExecutor, ProcessPoolExecutor])
def test_executors_make_the_files_of_the_command_alone(model: Path, tmp_path: Path, executor: type[Executor]):
    plan = apr.jobs.plan(tmp_path / "job.json", COMMAND, sources=[model], to=tmp_path / "out")
    tasks = apr.jobs.missing(plan)
    assert tasks == [*range(len(tasks))] and len(tasks) > 2
    with pytest.raises(apr.jobs.TryAgain):
        apr.jobs.finish(plan)
    with executor(2) as pool:
        apr.jobs.run(plan, pool)
    assert apr.jobs.missing(plan) == []
    report = apr.jobs.finish(plan, verify=True, report=tmp_path / "report.json")
    assert contents(tmp_path / "out") == contents(tmp_path / "alone")
    assert [result["exit"] for result in report["results"]] == [0] * len(tasks)
    assert apr.jobs.finish(plan) == report
    assert apr.jobs.status(plan)["finished"]
    apr.jobs.abort(plan)
    assert contents(tmp_path / "out") == contents(tmp_path / "alone")


def test_refused_inputs_are_results_and_changed_ones_are_not(vectors: Path, tmp_path: Path):
    (tmp_path / "text.txt").write_text("no model\n")
    plan = apr.jobs.plan(tmp_path / "job.json", ["check", "{in}"], sources=[tmp_path / "text.txt"], to=tmp_path / "out")
    (result,) = apr.jobs.run_task(plan, 0)["results"]
    assert (result["exit"], result["code"]) == (3, "cli-foreign-format")
    assert apr.jobs.finish(plan)["exit"] == 3

    plan = apr.jobs.plan(tmp_path / "second.json", ["scan", "{in}"], sources=[tmp_path / "text.txt"], to=tmp_path / "out")
    (tmp_path / "text.txt").write_text("another text\n")
    with ThreadPoolExecutor() as pool, pytest.raises(apr.AprError) as caught:
        apr.jobs.run(plan, pool)
    assert caught.value.code == "cli-input-changed"
    with pytest.raises(apr.AprError) as caught:
        apr.jobs.plan(tmp_path / "third.json", ["train", "{in}"], sources=[tmp_path / "text.txt"], to=tmp_path / "out")
    assert caught.value.code == "cli-usage"


class Flaky(Executor):
    """Loses each task once, as a worker that is killed does."""

    def __init__(self) -> None:
        self.lost: set[int] = set()

    def submit(self, function, plan, task):
        future: Future = Future()
        if task in self.lost:
            future.set_result(function(plan, task))
        else:
            self.lost.add(task)
            future.set_exception(RuntimeError("the worker was lost"))
        return future


def test_lost_tasks_are_submitted_again(model: Path, tmp_path: Path):
    plan = apr.jobs.plan(tmp_path / "job.json", COMMAND, sources=[model], to=tmp_path / "out")
    with pytest.raises(RuntimeError, match="lost"):
        apr.jobs.run(plan, Flaky(), tries=1)
    apr.jobs.run(plan, Flaky(), pause=0.01)
    apr.jobs.finish(plan)
    assert contents(tmp_path / "out") == contents(tmp_path / "alone")


def test_an_executor_that_is_broken_is_told_at_once(model: Path, tmp_path: Path):
    plan = apr.jobs.plan(tmp_path / "job.json", COMMAND, sources=[model], to=tmp_path / "out")
    with ProcessPoolExecutor(1) as pool:
        with pytest.raises(BrokenProcessPool):
            pool.submit(os._exit, 1).result()
        with pytest.raises(BrokenProcessPool):
            apr.jobs.run(plan, pool)
    with ProcessPoolExecutor(1) as pool:
        apr.jobs.run(plan, pool)
    assert not apr.jobs.missing(plan)


def test_an_executor_that_breaks_is_not_tried_again(model: Path, tmp_path: Path):
    class Breaking(Executor):
        def submit(self, function, plan, task):
            future: Future = Future()
            future.set_exception(BrokenProcessPool("a worker was killed"))
            return future

    plan = apr.jobs.plan(tmp_path / "job.json", COMMAND, sources=[model], to=tmp_path / "out")
    with pytest.raises(BrokenProcessPool):
        apr.jobs.run(plan, Breaking(), pause=3600)


@contextmanager
def killed_soon(victim: int) -> Iterator[None]:
    """Kills a process a moment after the body has begun."""

    def kill() -> None:
        time.sleep(0.2)
        # Engines end processes that have nothing to do.
        with suppress(ProcessLookupError):
            os.kill(victim, signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    yield
    killer.join()


def test_dask_with_a_worker_that_is_killed(model: Path, tmp_path: Path):
    distributed = pytest.importorskip("distributed")
    plan = apr.jobs.plan(tmp_path / "job.json", COMMAND, sources=[model], to=tmp_path / "out")
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None, "local_directory": str(tmp_path)}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
        with killed_soon(client.submit(os.getpid, pure=False).result()):
            apr.jobs.run(plan, client.get_executor(pure=False))
        # Every task twice.
        tasks = range(apr.jobs.status(plan)["tasks"])
        for future in [client.submit(apr.jobs.run_task, str(plan), task, pure=False) for task in [*tasks, *tasks]]:
            assert future.result()["done"]
    apr.jobs.finish(plan, verify=True)
    assert contents(tmp_path / "out") == contents(tmp_path / "alone")


def test_ray_with_a_worker_that_is_killed(model: Path, tmp_path: Path):
    ray = pytest.importorskip("ray")
    plan = str(apr.jobs.plan(tmp_path / "job.json", COMMAND, sources=[model], to=tmp_path / "out"))
    with ray.init(num_cpus=2, include_dashboard=False):
        run_task = ray.remote(apr.jobs.run_task)
        tasks = apr.jobs.missing(plan)
        with killed_soon(ray.get(ray.remote(lambda: os.getpid()).remote())):
            ray.get([run_task.remote(plan, task) for task in tasks])
        # Every task again, also while it runs.
        assert all(result["done"] for result in ray.get([run_task.remote(plan, task) for task in [*tasks, *tasks]]))
    apr.jobs.finish(plan, verify=True)
    assert contents(tmp_path / "out") == contents(tmp_path / "alone")


def test_spark_with_a_worker_that_is_killed(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    pyspark = pytest.importorskip("pyspark")
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    plan = str(apr.jobs.plan(tmp_path / "job.json", COMMAND, sources=[model], to=tmp_path / "out"))
    # A task may fail three times, as on a cluster: alone, local mode tries once.
    settings = pyspark.SparkConf().setMaster("local[2, 4]").setAppName("apr").set("spark.ui.enabled", "false")
    with pyspark.SparkContext(conf=settings.set("spark.local.dir", str(tmp_path))) as spark:
        tasks = apr.jobs.missing(plan)
        with killed_soon(spark.parallelize([0], 1).map(lambda _: os.getpid()).first()):
            spark.parallelize(tasks, len(tasks)).foreach(lambda task: apr.jobs.run_task(plan, task))
        twice = spark.parallelize([*tasks, *tasks], 2 * len(tasks))
        assert all(twice.map(lambda task: apr.jobs.run_task(plan, task)["done"]).collect())
    apr.jobs.finish(plan, verify=True)
    assert contents(tmp_path / "out") == contents(tmp_path / "alone")


def test_no_tries_at_all_are_refused(tmp_path: Path):
    with ThreadPoolExecutor() as executor, pytest.raises(ValueError, match="tries is 1 or more"):
        apr.jobs.run(tmp_path / "job.json", executor, tries=0)
