"""The engine: runs named tasks on workers of dask.distributed, here or on a cluster.

Without an address it starts workers in this process, one task each, as many as cores and memory
allow. They open no port, since a scheduler runs any code that its clients send. With an address it
uses the workers of a cluster. The code is the same: values and results travel through the engine,
so that workers need no shared disk.
"""

import contextlib
import logging
import os
import ssl
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import psutil
from distributed import Client, Scheduler, SpecCluster, Worker, as_completed, get_worker
from distributed.core import Status
from distributed.scheduler import KilledWorker
from distributed.security import Security

__all__ = ["Engine", "EngineError", "Task", "Work", "local_workers", "security_of"]

WAIT = 30.0  # seconds for a cluster to answer
MEMORY = 2 << 30  # bytes of a tool on a large FPGA
# Of a task that runs again, because the worker with its result was lost.
_REPEATED = "lost", "pending"


class EngineError(RuntimeError):
    """The cluster cannot be used; the message says why."""


def local_workers() -> int:
    """Workers for this machine: one for each core, and for each 2 GiB of free memory."""
    cores = len(os.sched_getaffinity(0))
    return max(1, min(cores, psutil.virtual_memory().available // MEMORY))


def security_of(ca: str, cert: str, key: str) -> Security:
    """The certificates for a cluster; raises EngineError if a file is no certificate or key."""
    for file in (ca, cert, key):
        open(file, "rb").close()  # an error with the name of the file
    try:
        ssl.create_default_context(cafile=ca).load_cert_chain(cert, key)
    except ssl.SSLError as error:
        raise EngineError(
            f"{ca}, {cert} and {key} must be a certificate of an authority, a certificate, and the"
            f" private key of this one, as PEM: {error.reason}"
        ) from error
    return Security(
        tls_ca_file=ca, tls_client_cert=cert, tls_client_key=key, require_encryption=True
    )


@dataclass(frozen=True)
class Task:
    """A function of values, with a name.

    Attributes
    ----------
    key : str
        Tasks of the same key are one run.
    function : callable
        Called with the arguments, and last with a function that tells whether nobody waits for the
        result any more.
    arguments : tuple
        Values. A `Task` in it is run first, once for all tasks with this argument; its result is
        the value.
    """

    key: str
    function: Callable[..., Any]
    arguments: tuple[Any, ...] = ()


class Work(Protocol):
    """The kind of items that an engine runs; it can be pickled."""

    def task(self, item: Any) -> Task:
        """The task of an item."""

    def failed(self, detail: str) -> Any:
        """The result of an item whose worker failed or was lost several times."""

    def versions(self) -> dict[str, str]:
        """The versions in this process that results depend on."""

    def set_up(self) -> None:
        """Prepare this machine."""


class _LocalScheduler(Scheduler):
    """A scheduler without the page that every scheduler serves, which would open a port."""

    def start_http_server(self, *args, **options):
        """Do nothing."""


class _LocalWorker(Worker):
    """A worker without the page that every worker serves."""

    def start_http_server(self, *args, **options):
        """Do nothing."""


def _local_cluster(workers):
    """Workers in this process: each task runs a process of its own anyway."""
    options = {"protocol": "inproc"}  # queues of this process, no sockets
    worker = {
        "cls": _LocalWorker, "options": options | {"nthreads": 1, "memory_limit": 0},
    }
    return SpecCluster(
        scheduler={"cls": _LocalScheduler, "options": options | {"dashboard": False}},
        workers=dict.fromkeys(range(workers), worker), silence_logs=logging.ERROR,
    )


class Engine:
    """Runs items; a context manager.

    Parameters
    ----------
    work : Work
        What the items are.
    address : str, optional
        Of the scheduler of a cluster: ``tls://host:8786``. By default workers are started here.
    workers : int, optional
        Number of local workers.
    security : Security, optional
        The certificates for a cluster.

    Attributes
    ----------
    address : str
        Of the scheduler; of workers in this process, a name that no other process can use.
    dashboard : str
        The page of the scheduler of a cluster.
    pending : int
        Items that are submitted and not returned yet.
    ready : int
        Their tasks, and the tasks in arguments, that run or only wait for a worker.

    Raises
    ------
    EngineError
        If no scheduler or no worker answers, or workers have other versions than this process.
    """

    def __init__(
        self, work: Work, address: str | None = None, *, workers: int | None = None,
        security: Security | None = None,
    ):
        self._work = work
        self._client = self._cluster = None
        self._items = {}  # by future, an item and the futures of the tasks in its arguments
        if address is None:
            # A thread may report the end of a connection even after `close`.
            logging.getLogger("distributed").setLevel(logging.ERROR)
            self._cluster = _local_cluster(workers or local_workers())
        try:
            self._client = Client(
                self._cluster or address, timeout=WAIT, set_as_default=False, security=security
            )
            self._client.wait_for_workers(1, timeout=WAIT)
        except (OSError, TimeoutError, ValueError) as error:
            self.close()
            raise EngineError(
                f"no scheduler with workers answers at {address} within {WAIT:g} s; docs/explore.md"
                " says how to start them"
            ) from error
        self.address = self._client.scheduler.address
        self.dashboard = self._client.dashboard_link
        self._kept = {}  # key -> future of a task that is an argument
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
                self._client.cancel(list(self._items), asynchronous=False)
        for part in (self._client, self._cluster):
            if part is not None:
                part.close()
        self._client = self._cluster = None

    @property
    def pending(self) -> int:
        return len(self._items)

    @property
    def ready(self) -> int:
        keys = set()
        for future, (_, arguments) in self._items.items():
            keys |= {each.key for each in arguments if not each.done()} or {future.key}
        return len(keys)

    @property
    def workers(self) -> int:
        """Tasks that run at once."""
        try:
            return sum(self._client.nthreads().values())
        except OSError as error:
            raise self._lost() from error

    def set_up(self) -> None:
        """Prepare every machine of the cluster; raises what `Work.set_up` raises."""
        self._client.run(self._work.set_up)

    def submit(self, item: Any) -> None:
        """Run the task of an item, after the tasks in its arguments."""
        task = self._work.task(item)
        for argument in _tasks(task):
            if argument.key not in self._kept:
                self._kept[argument.key] = self._start(argument)
        future = self._start(task)
        self._items[future] = item, [self._kept[each.key] for each in _tasks(task)]
        self._results.add(future)

    def forget(self, item: Any) -> None:
        """Release the results of the tasks in an item's arguments, which no other item needs."""
        for argument in _tasks(self._work.task(item)):
            self._kept.pop(argument.key, None)

    def results(self) -> Iterator[tuple[Any, Any]]:
        """Yield each submitted item with its result, as they end; more may be submitted meanwhile.

        Raises EngineError if the scheduler is lost.
        """
        while self._items:
            future = next(self._results)
            if future.status in _REPEATED:
                self._results.add(future)
                continue
            item, _ = self._items.pop(future)
            if future.status == "finished":
                yield item, future.result()
                continue
            error = future.exception() if future.status == "error" else None
            if error is None:
                raise self._lost()
            lost = isinstance(error, KilledWorker)
            yield item, self._work.failed(
                "the worker was lost several times" if lost else f"the worker failed: {error}"
            )

    def _start(self, task):
        values = [
            self._kept[value.key] if isinstance(value, Task) else value
            for value in task.arguments
        ]
        return self._client.submit(_run, task.function, *values, key=task.key, retries=1)

    def _lost(self):
        return EngineError(
            f"the scheduler {self.address} is lost; finished runs are recorded, and the same"
            " command continues with the others"
        )

    def _check_versions(self):
        ours = self._work.versions()
        for worker, theirs in self._client.run(self._work.versions).items():
            different = [
                f"{name} {theirs.get(name, 'missing')}, here {version}"
                for name, version in ours.items() if theirs.get(name) != version
            ]
            if different:
                raise EngineError(
                    f"the worker {worker} must have the versions of this process, not"
                    f" {'; '.join(different)}"
                )


def _tasks(task):
    return [argument for argument in task.arguments if isinstance(argument, Task)]


def _run(function, *values):
    return function(*values, _stopped())


def _stopped():
    """A function that tells whether nobody waits for the task of this worker any more."""
    worker = get_worker()
    key = worker.get_current_task()

    def stopped():
        task = worker.state.tasks.get(key)
        return worker.status is not Status.running or task is None or task.state != "executing"

    return stopped
