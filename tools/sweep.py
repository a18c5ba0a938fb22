"""Draw random Configs: generate and lint each design, and multiply with some of them.

    python tools/sweep.py [--seed INT] [--only INT]

Config number i of a seed is always the same one, and so are its products: what fails prints the
command that repeats it alone. The first designs are simulated, which lints them too; all products
run back to back, without a reset, and are compared with the golden models bit by bit.
"""

import argparse
import contextlib
import os
import secrets
import sys
import time
import traceback
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

import numpy as np
from ml_dtypes import bfloat16

from weft import golden
from weft.config import Config
from weft.geometry import operands
from weft.host import Accelerator
from weft.host.golden import GoldenTransport
from weft.sim.configs import random_config
from weft.sim.lint import lint
from weft.sim.transport import SimTransport

BUILD = Path(__file__).parent.parent / "build"
CONFIGS, MULTIPLIED = 300, 60
PRODUCTS = 6  # of each Config that is multiplied with
DEEPEST = 1500  # K of a product, at most
SPECIAL = np.array(
    [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-40, -1e-40, 2.0**-126, 3.3e38, -3.3e38, 1], np.float32
)


def config_of(seed: int, number: int) -> Config:
    """Config ``number`` of a sweep."""
    return random_config(np.random.default_rng([seed, number]))


def problem(seed: int, number: int, *, multiplies: bool) -> str:
    """What is wrong with a Config of a sweep, and how to repeat it; empty for nothing."""
    config = config_of(seed, number)
    try:
        wrong = multiplied(config, [seed, number]) if multiplies else lint(config)
    except Exception:  # whatever fails is told along with the Config that it fails for
        wrong = traceback.format_exc()
    again = f"to repeat it: python tools/sweep.py --seed {seed} --only {number}"
    return f"{config}\n{wrong.strip()}\n{again}" if wrong else ""


def multiplied(config: Config, seed) -> str:
    """What is wrong with products of a simulated Config; empty for nothing.

    Results are compared with the golden functions, and cycles with the cycle model.
    """
    rng = np.random.default_rng([*seed, 1])
    draw = _integers if config.dtype == "int8" else _floats
    with (
        Accelerator(SimTransport(config), config) as chip,
        Accelerator(GoldenTransport(config), config) as model,
    ):
        for _ in range(PRODUCTS):
            a, b, options, want = draw(rng, config, *_shape(rng, config))
            resident = rng.random() < 0.2 and _fits(config, b)
            what = f"{a.dtype}{list(a.shape)} @ {b.dtype}{list(b.shape)}, {list(options)}"
            said = []
            for accelerator in (chip, model):
                with accelerator.load(b) if resident else contextlib.nullcontext(b) as held:
                    said.append(accelerator.matmul(a, held, **options, record=True))
            (got, record), (_, predicted) = said
            if (got.dtype, got.shape) != (want.dtype, want.shape):
                return f"{what}: {got.dtype}{got.shape} in place of {want.dtype}{want.shape}"
            if got.tobytes() != want.tobytes():
                return f"{what}:\n{got}\nin place of\n{want}"
            if record != predicted:
                return f"{what}: {record} in place of {predicted}"
    return ""


def _shape(rng, config):
    """M, K and N: single ones, whole tiles, ragged edges; now and then a K that must be split."""
    a, b = operands(config)
    m, n = (
        int(rng.choice([1, edge, 2 * edge, rng.integers(1, 3 * edge + 2)]))
        for edge in (a.edge, b.edge)
    )
    room = min(a.words, b.words) * a.depth
    deep = min(DEEPEST, int(rng.integers(room, 2 * room)))
    k = rng.choice([1, config.depth, rng.integers(1, 5 * config.depth + 9), deep])
    return m, int(k), n


def _fits(config, b):
    """Whether B can stay in its buffer."""
    operand, (k, n) = operands(config)[1], b.shape
    return operand.panels(n) * operand.panel_pages(k) <= operand.pages


def _integers(rng, config, m, k, n):
    """Operands, options and results of one INT8 product."""
    kinds = [np.int8, np.uint8]
    scales = config.requantize != "none" and rng.random() < 0.7
    columns = config.b_zero_point == "column" or not scales
    a = _bytes(rng, rng.choice(kinds), m, k)
    b = _bytes(rng, rng.choice(kinds) if columns else np.int8, k, n)
    before = {}
    if rng.random() < 0.6:
        before["a_zero_point"] = _bytes(rng, a.dtype, *(() if scales else _each(rng, m)))
    if columns and rng.random() < 0.6:
        before["b_zero_point"] = _bytes(rng, b.dtype, *_each(rng, n))
    bias = rng.integers(-(1 << 16), 1 << 16, _each(rng, n))
    sums = golden.add_bias(golden.matmul(a, b, **before), bias)
    options = before | {"bias": bias}
    if not scales:
        return a, b, options, sums
    more, table = _scaling(rng, config, k, n)
    want = golden.requantize(sums, **more, mode=config.requantize)
    if table is not None:
        want = golden.activate(want, table)
        more["activation"] = table
    return a, b, options | {"out_dtype": more.pop("dtype")} | more, want


def _scaling(rng, config, k, n):
    """Arguments of golden's ``requantize``, and an activation table or None."""
    kind = rng.choice([np.int8, np.uint8])
    wild = rng.random() < 0.2  # any scale that is allowed, not one that suits the sums
    options = {"dtype": kind, "zero_point": int(_bytes(rng, kind))}
    if rng.random() < 0.5:
        options["low"], options["high"] = sorted(int(y) for y in _bytes(rng, kind, 2))
    if config.requantize == "onnx":
        low, high = (-126, 127) if wild else (-14, -6)
        options["scale"] = np.float32(2.0 ** rng.uniform(low, high, _each(rng, n)))
    else:
        most = -6 - k.bit_length() // 2
        low, high = (-31, 31) if wild else (most - 3, most)
        multiplier = rng.integers(1 << 30, 1 << 31, each := _each(rng, n))
        options["multiplier"] = np.where(rng.random(each) < 0.05, 0, multiplier)
        options["shift"] = rng.integers(low, high, _each(rng, n), endpoint=True)
    table = config.activation == "table" and rng.random() < 0.5
    return options, _bytes(rng, kind, 256) if table else None


def _floats(rng, config, m, k, n):
    """Operands, options and results of one BF16 product."""
    share = rng.choice([0, 0.01, 0.3])

    def numbers(*shape):
        values = rng.standard_normal(shape) * 2.0 ** rng.integers(-9, 9, shape)
        return np.where(rng.random(shape) < share, rng.choice(SPECIAL, shape), values)

    a, b = (numbers(*shape).astype(bfloat16) for shape in ((m, k), (k, n)))
    options, start, limits = {}, None, {}
    if config.c_words and rng.random() < 0.7:
        name, shape = [("c", (m, n)), ("c", (m, 1)), ("bias", (n,))][rng.integers(3)]
        start = options[name] = numbers(*shape).astype(np.float32)
    want = golden.matmul_bf16(a, b, start=start, flush_subnormals=config.flush_subnormals)
    if config.activation == "clamp" and rng.random() < 0.6:
        ends = rng.standard_normal((2, *_each(rng, n))).astype(np.float32)
        limits = {"low": ends.min(0), "high": ends.max(0)}
        want = golden.clamp(want, **limits)
    if rng.random() < 0.5:
        options["out_dtype"] = bfloat16
        want = golden.to_bfloat16(want)
    return a, b, options | limits, want


def _bytes(rng, kind, *shape):
    """Numbers of all of the type's range, or the extremes alone."""
    info = np.iinfo(kind)
    if rng.random() < 0.2:
        return rng.choice([info.min, info.max], shape).astype(kind)
    return rng.integers(info.min, info.max, shape, dtype=kind, endpoint=True)


def _each(rng, n):
    """The shape of a parameter: one number, or one for each of ``n`` columns or rows."""
    return (n,) if rng.random() < 0.5 else ()


def main() -> int:
    parser = argparse.ArgumentParser(description="lint and multiply with random Configs")
    parser.add_argument("--seed", type=int, help="decides all that is drawn; default a new one")
    parser.add_argument("--only", type=int, metavar="INT", help="lint and multiply with this one")
    args = parser.parse_args()
    os.environ.setdefault("WEFT_BUILD", str(BUILD))
    seed = secrets.randbelow(1 << 32) if args.seed is None else args.seed
    print(f"seed {seed}", flush=True)
    if args.only is not None:
        wrong = [problem(seed, args.only, multiplies=multiplies) for multiplies in (False, True)]
    else:
        wrong = _sweep(seed)
    wrong = [text for text in wrong if text]
    print(*wrong, f"{len(wrong)} problems", sep="\n")
    return 1 if wrong else 0


def _sweep(seed):
    """The problems of all Configs; tells how far it is."""
    start, texts = time.monotonic(), []
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        runs = {
            pool.submit(problem, seed, number, multiplies=number < MULTIPLIED): number
            for number in range(CONFIGS)
        }
        for done, run in enumerate(as_completed(runs), 1):
            texts.append(run.result())
            left = (time.monotonic() - start) / done * (CONFIGS - done) / 60
            name = config_of(seed, runs[run]).name
            how = "multiplied" if runs[run] < MULTIPLIED else "linted"
            print(
                f"{done:3}/{CONFIGS}  {name:24} {how:10}  {'WRONG' if texts[-1] else 'ok':5}"
                f"  {left:.0f} min left", flush=True,
            )
    return texts


if __name__ == "__main__":
    sys.exit(main())
