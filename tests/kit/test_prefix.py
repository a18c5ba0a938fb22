"""Cores with different prefixes: all their names differ, and one firmware can use both."""

import ctypes
import json
import re

import numpy as np
import pytest
from register_model import RegisterModel

from weft.config import Config
from weft.ip import Ip
from weft.kit.bench import bench
from weft.kit.documents import documents, header
from weft.kit.driver import driver
from weft.kit.files.weft_driver import Driver, compile_driver

CORES = {
    "weft": Ip(config=Config(rows=2, cols=4, a_words=64, b_words=64), bus="axi"),
    "mm": Ip(
        config=Config(rows=3, cols=8, depth=4, bytes_in=8, bytes_out=8, a_words=64, b_words=64),
        bus="dma", prefix="mm",
    ),
}
# A firmware that includes both headers in one file.
FIRMWARE = """\
#include "mm.h"
#include "weft.h"

int firmware(weft_core *one, const weft_product *p, mm_core *other, const mm_product *q);
int firmware(weft_core *one, const weft_product *p, mm_core *other, const mm_product *q)
{
    int error = weft_matmul(one, p);
    return error == WEFT_OK ? mm_matmul(other, q) : error;
}
"""


@pytest.fixture(scope="module")
def firmware(tmp_path_factory):
    """A library with both drivers and the firmware."""
    folder = tmp_path_factory.mktemp("firmware")
    (folder / "firmware.c").write_text(FIRMWARE)
    hooks = []
    for prefix, ip in CORES.items():
        subfolder = folder / prefix
        subfolder.mkdir()
        files = driver(ip) | {f"{ip.name}_regs.h": header(ip)}
        bench_files = bench(ip, [])
        files |= {name: bench_files[name] for name in ("driver_hooks.h", "driver_glue.c")}
        for name, data in files.items():
            (subfolder / name).write_bytes(data)
        hooks.append(f'#include "{subfolder}/driver_hooks.h"\n')
    (folder / "hooks.h").write_text("".join(hooks))
    return compile_driver(sorted(folder.rglob("*.c")), folder / "hooks.h", folder)


def test_two_cores_in_one_firmware(firmware):
    rng, products = np.random.default_rng(5), []
    for prefix, ip in CORES.items():
        core = Driver(firmware, RegisterModel(ip), prefix)
        assert core.call("weft_init", None) == 0
        a, b = (rng.integers(-128, 128, s, dtype=np.int8) for s in ((5, 9), (9, 7)))
        c = core.alloc((5, 16), np.int32)[:, :7]
        product = core.product(core.put(a), core.put(b), c)
        products.append((core, product, c, a.astype(np.int64) @ b.astype(np.int64)))
    arguments = [x for core, product, *_ in products for x in (core.core, ctypes.byref(product))]
    assert products[0][0].lib.firmware(*arguments) == 0
    assert all(np.array_equal(c, want) for *_, c, want in products)


def test_every_name_has_the_prefix():
    """Functions, types, macros, include guards and files: the default prefix is not left."""
    ip = CORES["mm"]
    files = driver(ip) | documents(ip, "0")
    names = {"mm.h", "mm.c", "mm_internal.h", "mm_config.h", "mm_dma.c", f"{ip.name}_regs.h"}
    assert names <= set(files)
    for name, data in files.items():
        if name.endswith((".c", ".h")):
            assert name.startswith("mm")
            code = re.sub(r"/\*.*?\*/|//[^\n]*", "", data.decode(), flags=re.DOTALL)
            assert re.findall(r"\w*weft\w*", code, re.IGNORECASE) == [], name
    assert b"addrmap mm {" in files[f"{ip.name}.rdl"]


@pytest.mark.slow
def test_the_kit_has_the_prefix(kits):
    ip, files = kits("axi", prefix="dense_1")
    assert ip.name == "dense_1_axi_2x4x1"
    assert f"{ip.name}.v" in files and "driver/dense_1.h" in files
    assert f"module {ip.name}(" in files[f"{ip.name}.v"].decode()
    assert "--prefix dense_1 --config" in files[f"{ip.name}.v"].decode()
    assert "(driver/dense_1.h)" in files["README.md"].decode()
    assert json.loads(files["bench/design.json"])["prefix"] == "dense_1"
    assert json.loads(files["kit.json"])["prefix"] == "dense_1"
