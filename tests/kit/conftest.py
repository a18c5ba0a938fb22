"""Fixtures: kits, and the compiled C driver on a model of a core's registers."""

from pathlib import Path

import pytest
from network_cores import small_network_core
from register_model import HookedRegisterModel, RegisterModel

from weft.config import Config
from weft.ip import Ip
from weft.kit.build import build
from weft.kit.documents import header
from weft.kit.driver import driver
from weft.kit.files.weft_driver import Driver, compile_driver
from weft.kit.folder import text
from weft.network_core.ip import NetworkIp


@pytest.fixture(scope="session")
def kits():
    """``kits(bus, **fields)``: a small core and the files of its kit. Each kit is made once.

    ``kits("networks")`` is a network core; ``core`` and ``of`` are its bus and fields of it.
    """
    cache = {}

    def kit(bus, clocks=1, pipelined=False, prefix="weft", core="axi", **fields):
        key = bus, clocks, pipelined, prefix, core, *fields.items()
        if key not in cache:
            if bus == "networks":
                config = small_network_core(2, 2, 2, **{"words": 512, **fields})
                ip = NetworkIp(config=config, bus=core, prefix="mm", pipelined=pipelined)
            else:
                config = Config(**{"rows": 2, "cols": 4, "a_words": 64, "b_words": 64, **fields})
                ip = Ip(config=config, bus=bus, clocks=clocks, pipelined=pipelined, prefix=prefix)
            cache[key] = ip, build(ip)
        return cache[key]

    return kit


@pytest.fixture(scope="session")
def libraries(tmp_path_factory):
    """``libraries(ip, changes)``: the path of the compiled driver. Each one is compiled once.

    ``changes`` are (file, old text, new text).
    """
    cache = {}

    def library(ip, changes=()):
        key = repr(ip), changes
        if key not in cache:
            folder = tmp_path_factory.mktemp("driver")
            files = driver(ip) | {f"{ip.name}_regs.h": header(ip)}
            files |= {name: text(name).encode() for name in ("driver_hooks.h", "driver_glue.c")}
            for name, old, new in changes:
                assert files[name].count(old.encode()) == 1
                files[name] = files[name].replace(old.encode(), new.encode())
            for name, data in files.items():
                Path(folder, name).write_bytes(data)
            sources = sorted(folder.glob("*.c"))
            cache[key] = compile_driver(sources, folder / "driver_hooks.h", folder)
        return cache[key]

    return library


@pytest.fixture
def golden(libraries):
    """``golden(ip, *changes)``: a driver on a `RegisterModel`."""
    return lambda ip, *changes: Driver(libraries(ip, changes), RegisterModel(ip))


@pytest.fixture
def hooked(libraries):
    """``hooked(ip, seed)``: an initialized driver on a `HookedRegisterModel`."""
    def make(ip, seed=1):
        driver = Driver(libraries(ip), HookedRegisterModel(ip, seed=seed))
        assert driver.call("weft_init", None) == 0
        driver.call("test_poll_limit", 300)
        return driver

    return make
