"""Runner: the runs of a profile that are not done yet, one after the other, in parallel, or on Dask."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import BrokenExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from joblib import Parallel, delayed
from joblib.externals.loky import get_reusable_executor

from reliablenet._checks import check_count, parameter_error
from reliablenet._dask import connected
from reliablenet._workers import end_with, one_thread, replaced_quietly
from reliablenet.bench.geometry import GeometryJob, geometry_job
from reliablenet.bench.measuring import Run, failed_runs, run_training
from reliablenet.bench.methods import GEOMETRY, METHODS, Method, Training, study_methods
from reliablenet.bench.profiles import Plan, Profile
from reliablenet.bench.results import find_run, finished_runs
from reliablenet.bench.store import Store

WORKER_LOST = "WorkerLost: the process was killed, as a system does that is short of memory"


@dataclass(frozen=True)
class Job:
    """One training of one plan and seed, and the methods of it that are still wanted."""

    plan_name: str
    plan: Plan
    training: Training
    methods: tuple[Method, ...]
    seed: int
    rho: float

    def __str__(self) -> str:
        return f"{self.plan_name} {self.training.name} {self.seed}"

    def run(self) -> dict[str, Run]:
        """Fit and measure; whatever goes wrong is recorded as the error of every method."""
        return run_training(self.plan, self.training, self.methods, self.seed, self.rho)

    def failed(self, story: str) -> dict[str, Run]:
        """Return the records of methods that could not be run, and why."""
        return failed_runs(self.plan, self.methods, self.seed, self.rho, story)


AnyJob = Job | GeometryJob


def pending_jobs(
    profile: Profile,
    store: Store,
    plans: Sequence[str] | None = None,
    methods: Sequence[str] | None = None,
    seeds: Sequence[int] | None = None,
) -> list[AnyJob]:
    """Return what is left to do: runs whose record is absent, failed, or of other settings.

    Parameters
    ----------
    profile : Profile
    store : Store
    plans, methods, seeds : sequence, optional
        By default all of the profile; ablations only if they are named. "geometry" among the
        methods is what the figures of the geometry of Synthetic Band show.

    Returns
    -------
    list of Job and GeometryJob
        Seed by seed, so that every method has some results early.
    """
    chosen = _check("datasets", plans, list(profile.plans))
    usual = [method.name for method in study_methods()] + [GEOMETRY]
    wanted = usual if methods is None else _check("methods", methods, [*METHODS, GEOMETRY])
    by_training: dict[Training, list[Method]] = {}
    for method in METHODS.values():
        if method.name in wanted:
            by_training.setdefault(method.training, []).append(method)
    drawn = geometry_job(profile) if GEOMETRY in wanted else None
    jobs: list[AnyJob] = []
    for seed in profile.seeds if seeds is None else seeds:
        for name in chosen:
            plan = profile.plans[name]
            for training, made in by_training.items():
                missing = tuple(
                    method
                    for method in made
                    if training.suits(plan)
                    and find_run(store, profile, name, method.name, seed) is None
                )
                if missing:
                    jobs.append(Job(name, plan, training, missing, seed, profile.rho))
            if drawn and (drawn.plan_name, drawn.seed) == (name, seed) and not drawn.find(store):
                jobs.append(drawn)
    return jobs


def count_runs(profile: Profile, store: Store) -> dict[str, tuple[int, int, int]]:
    """Return for each plan how many runs are finished, failed, and left to do (failed ones too)."""
    counts = {}
    drawn = geometry_job(profile)
    for name, plan in profile.plans.items():
        methods = [method.name for method in study_methods(plan)]
        keys = [(method, seed) for method in methods for seed in profile.seeds]
        done = sum(len(finished_runs(store, profile, name, method)) for method in methods)
        if drawn and drawn.plan_name == name:
            keys.append((GEOMETRY, drawn.seed))
            done += drawn.find(store) is not None
        records = [store.read(name, method, seed) for method, seed in keys]
        failed = sum(record is not None and "error" in record for record in records)
        counts[name] = (done, failed, len(keys) - done)
    return counts


def run_jobs(
    jobs: Sequence[AnyJob],
    store: Store,
    *,
    n_jobs: int = 1,
    dask: str | None = None,
    verbose: bool | str = "auto",
) -> list[str]:
    """Run jobs and store each result as it comes; return what failed, a line each.

    Whatever stops this process loses the jobs at work and nothing else. A worker that is killed
    fails its own job and no other.

    Parameters
    ----------
    jobs : sequence of Job and GeometryJob
    store : Store
    n_jobs : int
        Processes; each uses one thread, so that results do not depend on their number.
    dask : str, optional
        Address of a Dask scheduler that runs the jobs in their place; "local" starts a cluster
        of ``n_jobs`` workers on this machine.
    verbose : bool or "auto"
        Progress on standard error; "auto" if that is a terminal.

    Returns
    -------
    list of str
    """
    check_count("n_jobs", n_jobs, "bench")
    store.check_writable()
    failures = []
    with _results(jobs, n_jobs, dask) as results, _progress(len(jobs), verbose) as show:
        for job, runs in results:
            for method, (record, curves) in runs.items():
                store.write(job.plan_name, method, job.seed, record, curves)
                if "error" in record:
                    failures.append(f"{job.plan_name} {method} {job.seed}: {record['error']}")
            show(str(job))
    return failures


Results = Iterable[tuple[AnyJob, dict[str, Run]]]


def _work(job: AnyJob) -> tuple[AnyJob, dict[str, Run]]:
    with one_thread():  # results must not depend on the number of threads
        return job, job.run()


@contextmanager
def _results(jobs: Sequence[AnyJob], n_jobs: int, dask: str | None) -> Iterator[Results]:
    """Yield the results of jobs as they come; no worker outlives the context."""
    if dask is None:
        results = _in_processes(jobs, n_jobs)
        with replaced_quietly():
            try:
                yield results
            finally:
                results.close()
                if n_jobs != 1:
                    get_reusable_executor(reuse=True).shutdown(wait=True, kill_workers=True)
        return
    with connected(dask, n_jobs) as client:
        yield _on_cluster(jobs, client)


def _in_processes(jobs: Sequence[AnyJob], n_jobs: int) -> Generator[tuple[AnyJob, dict[str, Run]]]:
    """Run jobs in processes of this machine, or in this one if one is enough."""
    left = list(jobs)
    while left:
        try:
            for job, runs in _parallel(tuple(left), n_jobs):
                left.remove(job)
                yield job, runs
        except BrokenExecutor:
            # A killed process takes all others with it. It was at one of the oldest jobs: each of
            # these gets a process to itself, and the one that is killed again has failed.
            for job in left[:n_jobs]:
                try:
                    [(_, runs)] = _parallel([job], 2)  # 1 would be this process
                except BrokenExecutor:
                    runs = job.failed(WORKER_LOST)
                left.remove(job)
                yield job, runs


def _parallel(jobs: Sequence[AnyJob], n_jobs: int) -> Results:
    results: Results = Parallel(n_jobs, return_as="generator_unordered")(
        delayed(_work_watched)(job, os.getpid()) for job in jobs
    )
    return results


def _work_watched(job: AnyJob, runner: int) -> tuple[AnyJob, dict[str, Run]]:
    end_with(runner)
    return _work(job)


def _on_cluster(jobs: Sequence[AnyJob], client: Any) -> Results:
    """Run jobs on Dask, which gives those of a lost worker to another, a few times."""
    from distributed import as_completed

    # Not through joblib: there, a job that Dask gave up is waited for without end.
    futures = {client.submit(_work, job, pure=False): job for job in jobs}
    for future in as_completed(futures):
        job = futures.pop(future)
        yield (job, job.failed(WORKER_LOST)) if future.status == "error" else future.result()


def _check(name: str, given: Sequence[str] | None, known: list[str]) -> list[str]:
    unknown = [item for item in given or () if item not in known]
    if unknown:
        raise parameter_error(name, "bench", f"be among {known}", unknown)
    return known if given is None else list(given)


@contextmanager
def _progress(total: int, verbose: bool | str) -> Iterator[Callable[[str], None]]:
    if not (sys.stderr.isatty() if verbose == "auto" else verbose):
        yield lambda finished: None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns: tuple[Any, ...] = (
        BarColumn(bar_width=20),
        TextColumn("{task.completed}/{task.total} trainings"),
        TextColumn("[dim]{task.description}"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("", total=total)
        yield lambda finished: bar.update(task, advance=1, description=f"last: {finished}")
