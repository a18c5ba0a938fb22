"""The engine: runs the steps of points on workers of dask.distributed, here or on a cluster.

Without an address it starts workers in this process, one tool each, as many as cores and memory
allow. With an address it uses the workers of a cluster. The code is the same: netlists and results
travel through the engine, so that workers need no shared disk.
"""

import contextlib
import logging
import os
from collections.abc import Iterator

import psutil
from distributed import Client, LocalCluster, as_completed, get_worker
from distributed.core import Status
from distributed.scheduler import KilledWorker

from weft.boards.toolchain import Toolchain
from weft.explore.points import Point, PointOutcome, versions
from weft.explore.steps import PointSteps, StepResult
from weft.sim.cache import folder

__all__ = ["Engine", "EngineError", "local_workers"]

WAIT = 30.0  # seconds for a cluster to answer
MEMORY = 2 << 30  # bytes of a tool on a large FPGA


class EngineError(RuntimeError):
    """The cluster cannot be used; the message says why."""


def local_workers() -> int:
    """Workers for this machine: one for each core, and for each 2 GiB of free memory."""
    cores = len(os.sched_getaffinity(0))
    return max(1, min(cores, psutil.virtual_memory().available // MEMORY))


class Engine:
    """Places and routes points; a context manager.

    Parameters
    ----------
    address : str, optional
        Of the scheduler of a cluster: ``tcp://host:8786``. By default workers are started here.
    workers : int, optional
        Number of local workers.
    steps : PointSteps, optional
        How the steps run.

    Attributes
    ----------
    address : str
        Of the scheduler.
    dashboard : str
        The page of the scheduler.
    pending : int
        Points that are submitted and not returned yet.

    Raises
    ------
    EngineError
        If no scheduler or no worker answers, or workers have other versions than this process.
    """

    def __init__(
        self, address: str | None = None, *, workers: int | None = None,
        steps: PointSteps | None = None,
    ):
        self._steps = steps or PointSteps()
        self._client = self._cluster = None
        self._points = {}
        if address is None:
            # In this process: each tool runs in a process of its own anyway.
            self._cluster = LocalCluster(
                n_workers=workers or local_workers(), threads_per_worker=1, processes=False,
                protocol="tcp", host="127.0.0.1", dashboard_address="127.0.0.1:0",
                memory_limit=None, silence_logs=logging.ERROR,
            )
        try:
            self._client = Client(self._cluster or address, timeout=WAIT, set_as_default=False)
            self._client.wait_for_workers(1, timeout=WAIT)
        except (OSError, TimeoutError, ValueError) as error:
            self.close()
            raise EngineError(
                f"no scheduler with workers answers at {address} within {WAIT:g} s; start them with"
                f" 'dask scheduler' and 'dask worker {address} --nthreads 1'"
            ) from error
        self.address = self._client.scheduler.address
        self.dashboard = self._client.dashboard_link
        self._netlists = {}
        self._results = as_completed(loop=self._client.loop, raise_errors=False)
        if self._cluster is None:
            try:
                self._check_versions()
            except BaseException:
                self.close()
                raise

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()

    def close(self) -> None:
        """Stop the runs in progress, and leave the cluster; local workers end."""
        if self._client is not None:
            with contextlib.suppress(OSError, TimeoutError):  # the scheduler may be lost
                self._client.cancel(list(self._points), asynchronous=False)
        for part in (self._client, self._cluster):
            if part is not None:
                part.close()
        self._client = self._cluster = None

    @property
    def pending(self) -> int:
        return len(self._points)

    @property
    def workers(self) -> int:
        """Tools that run at once."""
        try:
            return sum(self._client.nthreads().values())
        except OSError as error:
            raise self._lost() from error

    def set_up(self) -> None:
        """Install the tools on every machine of the cluster, if needed; raises ToolchainError."""
        self._client.run(_set_up)

    def submit(self, point: Point) -> None:
        """Synthesize the design of a point once for all seeds, then place and route it."""
        if point.design not in self._netlists:
            self._netlists[point.design] = self._client.submit(
                _synthesize, self._steps, point, key=f"synthesize-{point.design}", retries=1
            )
        future = self._client.submit(
            _place, self._steps, self._netlists[point.design], point, key=f"place-{point.key}",
            retries=1,
        )
        self._points[future] = point
        self._results.add(future)

    def forget(self, design: str) -> None:
        """Release the netlist of a design that gets no more seeds."""
        self._netlists.pop(design, None)

    def results(self) -> Iterator[tuple[Point, StepResult]]:
        """Yield each submitted point with its result, as they end; more may be submitted meanwhile.

        Raises EngineError if the scheduler is lost.
        """
        while self._points:
            future = next(self._results)
            point = self._points.pop(future)
            if future.status == "finished":
                yield point, future.result()
                continue
            error = future.exception() if future.status == "error" else None
            if error is None:
                raise self._lost()
            lost = isinstance(error, KilledWorker)
            detail = "the worker was lost several times" if lost else f"the worker failed: {error}"
            yield point, StepResult(PointOutcome(failure="crash", detail=detail))

    def _lost(self):
        return EngineError(
            f"the scheduler {self.address} is lost; finished points are recorded, and the same"
            " command continues with the others"
        )

    def _check_versions(self):
        ours = versions()
        for worker, theirs in self._client.run(versions).items():
            different = [
                f"{name} {theirs.get(name, 'missing')}, here {version}"
                for name, version in ours.items() if theirs.get(name) != version
            ]
            if different:
                raise EngineError(
                    f"the worker {worker} must have the versions of this process, not"
                    f" {'; '.join(different)}"
                )


def _set_up():
    Toolchain(folder(), say=lambda text: None).set_up()


def _synthesize(steps, point):
    return steps.synthesize(point, _stopped())


def _place(steps, netlist, point):
    return steps.place(netlist, point, _stopped())


def _stopped():
    """A function that tells whether nobody waits for the task of this worker any more."""
    worker = get_worker()
    key = worker.get_current_task()

    def stopped():
        task = worker.state.tasks.get(key)
        return worker.status is not Status.running or task is None or task.state != "executing"

    return stopped
