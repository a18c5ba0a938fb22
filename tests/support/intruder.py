"""Another process that tries to run code on a scheduler of dask.distributed, by its address."""

import subprocess
import sys

__all__ = ["run_as_intruder"]

_CODE = """
import os, sys, distributed
folder, address, *files = sys.argv[1:]
names = "tls_ca_file", "tls_client_cert", "tls_client_key"
security = distributed.Security(**dict(zip(names, files)), require_encryption=True)
try:
    with distributed.Client(address, timeout=5, security=security if files else None) as client:
        client.submit(os.mkdir, folder).result(timeout=60)
except Exception as error:
    print(type(error).__name__, flush=True)
"""


def run_as_intruder(folder, address, files=()):
    """Try to make ``intruded`` in a folder; the kind of the error, or "" after a success.

    ``files`` are the certificate of an authority, a certificate and its key.
    """
    command = [sys.executable, "-c", _CODE, folder / "intruded", address, *files]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()
