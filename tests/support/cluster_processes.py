"""A scheduler and workers of dask.distributed as processes of their own, joined by address.

They take only clients with a key, which is made for each cluster.
"""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import time

import pytest

__all__ = ["LIMIT", "ClusterProcesses", "make_certificate", "wait_for"]

LIMIT = 120  # seconds for anything here


def make_certificate(folder, name):
    """Make a key and a certificate that it signs itself; the files of both."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl must be installed")
    key, cert = folder / f"{name}.key", folder / f"{name}.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj",
         f"/CN={name}", "-keyout", key, "-out", cert],
        check=True, capture_output=True, timeout=LIMIT,
    )
    return cert, key


class ClusterProcesses:
    """Processes of a scheduler and of workers, each with a build folder of its own.

    ``files`` are the certificate of the authority, the certificate, and the key.
    """

    def __init__(self, folder):
        self._folder = folder
        self._processes = []
        cert, key = make_certificate(folder, "cluster")
        self.files = str(cert), str(cert), str(key)
        self._file = folder / "scheduler.json"
        self.scheduler = self._start(
            "scheduler", "--host", "tls://127.0.0.1", "--port", "0", "--no-dashboard",
            "--scheduler-file", self._file,
        )
        self.address = json.loads(wait_for(self._file))["address"]

    def add_worker(self, *options):
        return self._start(
            "worker", self.address, "--nthreads", "1", "--no-nanny", "--no-dashboard",
            "--memory-limit", "0", "--host", "tls://127.0.0.1", *options,
        )

    def _start(self, program, *arguments):
        number = len(self._processes)
        build = self._folder / f"build-{number}"
        environment = os.environ | {
            "WEFT_BUILD": str(build), "FAKE_LOG": str(self._folder / "log"),
            "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "3",
        }
        names = "--tls-ca-file", "--tls-cert", "--tls-key"
        tls = [str(word) for pair in zip(names, self.files, strict=True) for word in pair]
        command = [sys.executable, "-m", "dask", program, *map(str, arguments), *tls]
        with open(self._folder / f"{program}-{number}.txt", "w") as output:
            process = subprocess.Popen(
                command, env=environment, cwd=self._folder, stdout=output, stderr=output
            )
        self._processes.append(process)
        return process

    def runs(self):
        """(step, rows, seed, process) of each run of the stand-in."""
        with contextlib.suppress(FileNotFoundError):
            return [line.split() for line in (self._folder / "log").read_text().splitlines()]
        return []

    def close(self):
        for process in self._processes:
            process.kill()
            process.wait(LIMIT)


def wait_for(path):
    """The text of a file, when it has one."""
    for _ in range(10 * LIMIT):
        with contextlib.suppress(FileNotFoundError):
            if text := path.read_text():
                return text
        time.sleep(0.1)
    raise AssertionError(f"{path} must appear")
