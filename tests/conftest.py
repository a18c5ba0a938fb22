"""What tests share: where builds go, and simulated accelerators that live as long as the run."""

import os
from pathlib import Path

import pytest

from weft.host import Accelerator
from weft.sim.transport import SimTransport

os.environ.setdefault("WEFT_BUILD", str(Path(__file__).parent.parent / "build"))


@pytest.fixture(scope="session")
def transports():
    """``transports(config)``: the simulated transport of a Config, one for the whole run."""
    running = {}

    def transport(config):
        if config not in running:
            running[config] = SimTransport(config)
        return running[config]

    yield transport
    for one in running.values():
        one.close()


@pytest.fixture
def accelerators(transports):
    """``accelerators(config)``: the driver on the simulated transport of a Config."""
    return lambda config: Accelerator(transports(config), config)
