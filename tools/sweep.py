"""Generate and lint random Configs, and simulate products on some of them.

    python -m tools.sweep [--seed INT] [--only INT]

The seed and the number determine a Config and its products. A failure prints the command that
repeats it. The first designs are simulated, which lints them too. All products run back to back,
without a reset, and are compared with the golden models bit by bit.
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

from verif.configs import random_config
from verif.lint import lint
from weft import golden
from weft.config import Config
from weft.dtypes import DTYPES
from weft.geometry import operands
from weft.host import Accelerator
from weft.host.golden import GoldenTransport
from weft.sim.transport import SimTransport

BUILD = Path(__file__).parent.parent / "build"
CONFIGS, SIMULATED = 300, 60
PRODUCTS = 6  # on each simulated Config
MAX_K = 1500  # of a product
SPECIAL = np.array(
    [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-40, -1e-40, 2.0**-126, 3.3e38, -3.3e38, 1], np.float32
)


def config_of(seed: int, number: int) -> Config:
    """Config ``number`` of a sweep."""
    return random_config(np.random.default_rng([seed, number]))


def problem(seed: int, number: int, *, simulate: bool) -> str:
    """The problem with a Config of a sweep, and how to repeat it; empty without a problem."""
    config = config_of(seed, number)
    try:
        text = run_products(config, [seed, number]) if simulate else lint(config)
    except Exception:  # any failure is reported with its Config
        text = traceback.format_exc()
    repeat = f"to repeat it: python -m tools.sweep --seed {seed} --only {number}"
    return f"{config}\n{text.strip()}\n{repeat}" if text else ""


def run_products(config: Config, seed) -> str:
    """The first problem with products on a simulated Config; empty without a problem.

    Results are compared with the golden functions, and cycles with the cycle model.
    """
    rng = np.random.default_rng([*seed, 1])
    draw = _DRAWS[config.dtype]
    with (
        Accelerator(SimTransport(config), config) as simulated,
        Accelerator(GoldenTransport(config), config) as model,
    ):
        for _ in range(PRODUCTS):
            a, b, options, expected = draw(rng, config, *_shape(rng, config))
            resident = rng.random() < 0.2 and _fits(config, b)
            product = f"{a.dtype}{list(a.shape)} @ {b.dtype}{list(b.shape)}, {list(options)}"
            outcomes = []
            for accelerator in (simulated, model):
                with accelerator.load(b) if resident else contextlib.nullcontext(b) as right:
                    outcomes.append(accelerator.matmul(a, right, **options, record=True))
            (result, record), (_, predicted) = outcomes
            if (result.dtype, result.shape) != (expected.dtype, expected.shape):
                types = f"{expected.dtype}{expected.shape}, not {result.dtype}{result.shape}"
                return f"{product} must be {types}"
            if result.tobytes() != expected.tobytes():
                return f"{product} must be\n{expected}\nnot\n{result}"
            if record != predicted:
                return f"{product} must take {predicted}, not {record}"
    return ""


def _shape(rng, config):
    """M, K and N: 1, full and partial tiles; sometimes a K that must be split."""
    a, b = operands(config)
    m, n = (
        int(rng.choice([1, edge, 2 * edge, rng.integers(1, 3 * edge + 2)]))
        for edge in (a.edge, b.edge)
    )
    room = min(a.words, b.words) * a.depth
    deep = min(MAX_K, int(rng.integers(room, 2 * room)))
    k = rng.choice([1, config.depth, rng.integers(1, 5 * config.depth + 9), deep])
    return m, int(k), n


def _fits(config, b):
    """Whether B fits in its buffer."""
    operand, (k, n) = operands(config)[1], b.shape
    return operand.panels(n) * operand.panel_pages(k) <= operand.pages


def _integers(rng, config, m, k, n):
    """Operands, options and expected results of an INT8 product."""
    kinds = [np.int8, np.uint8]
    scales = config.requantize != "none" and rng.random() < 0.7
    columns = config.b_zero_point == "column" or not scales
    a = _bytes(rng, rng.choice(kinds), m, k)
    b = _bytes(rng, rng.choice(kinds) if columns else np.int8, k, n)
    zero_points = {}
    if rng.random() < 0.6:
        zero_points["a_zero_point"] = _bytes(rng, a.dtype, *(() if scales else _each(rng, m)))
    if columns and rng.random() < 0.6:
        zero_points["b_zero_point"] = _bytes(rng, b.dtype, *_each(rng, n))
    bias = rng.integers(-(1 << 16), 1 << 16, _each(rng, n))
    sums = golden.add_bias(golden.matmul(a, b, **zero_points), bias)
    options = zero_points | {"bias": bias}
    if not scales:
        return a, b, options, sums
    more, table = _scaling(rng, config, k, n)
    results = golden.requantize(sums, **more, mode=config.requantize)
    if table is not None:
        results = golden.activate(results, table)
        more["activation"] = table
    return a, b, options | {"out_dtype": more.pop("dtype")} | more, results


def _scaling(rng, config, k, n):
    """Arguments of golden's ``requantize``, and an activation table or None."""
    kind = rng.choice([np.int8, np.uint8])
    any_scale = rng.random() < 0.2  # not only scales that suit the sums
    options = {"dtype": kind, "zero_point": int(_bytes(rng, kind))}
    if rng.random() < 0.5:
        options["low"], options["high"] = sorted(int(y) for y in _bytes(rng, kind, 2))
    if config.requantize == "onnx":
        low, high = (-126, 127) if any_scale else (-14, -6)
        options["scale"] = np.float32(2.0 ** rng.uniform(low, high, _each(rng, n)))
    else:
        limit = -6 - k.bit_length() // 2
        low, high = (-31, 31) if any_scale else (limit - 3, limit)
        multiplier = rng.integers(1 << 30, 1 << 31, each := _each(rng, n))
        options["multiplier"] = np.where(rng.random(each) < 0.05, 0, multiplier)
        options["shift"] = rng.integers(low, high, _each(rng, n), endpoint=True)
    table = config.activation == "table" and rng.random() < 0.5
    return options, _bytes(rng, kind, 256) if table else None


def _floats(rng, config, m, k, n):
    """Operands, options and expected results of a BF16 product."""
    share = rng.choice([0, 0.01, 0.3])

    def numbers(*shape):
        values = rng.standard_normal(shape) * 2.0 ** rng.integers(-9, 9, shape)
        return np.where(rng.random(shape) < share, rng.choice(SPECIAL, shape), values)

    a, b = (numbers(*shape).astype(bfloat16) for shape in ((m, k), (k, n)))
    options, start, limits = {}, None, {}
    if config.c_words and rng.random() < 0.7:
        name, shape = [("c", (m, n)), ("c", (m, 1)), ("bias", (n,))][rng.integers(3)]
        start = options[name] = numbers(*shape).astype(np.float32)
    results = golden.matmul_bf16(a, b, start=start, flush_subnormals=config.flush_subnormals)
    if config.activation == "clamp" and rng.random() < 0.6:
        ends = rng.standard_normal((2, *_each(rng, n))).astype(np.float32)
        limits = {"low": ends.min(0), "high": ends.max(0)}
        results = golden.clamp(results, **limits)
    if rng.random() < 0.5:
        options["out_dtype"] = bfloat16
        results = golden.to_bfloat16(results)
    return a, b, options | limits, results


def _bytes(rng, kind, *shape):
    """Numbers over the whole range of a type, or only its extremes."""
    info = np.iinfo(kind)
    if rng.random() < 0.2:
        return rng.choice([info.min, info.max], shape).astype(kind)
    return rng.integers(info.min, info.max, shape, dtype=kind, endpoint=True)


def _each(rng, n):
    """The shape of a parameter: one number, or one for each of ``n`` columns or rows."""
    return (n,) if rng.random() < 0.5 else ()


def main() -> int:
    parser = argparse.ArgumentParser(description="lint and simulate random Configs")
    parser.add_argument("--seed", type=int, help="seed of all random choices; default: a new one")
    parser.add_argument("--only", type=int, metavar="INT", help="lint and simulate only this one")
    args = parser.parse_args()
    os.environ.setdefault("WEFT_BUILD", str(BUILD))
    seed = secrets.randbelow(1 << 32) if args.seed is None else args.seed
    print(f"seed {seed}", flush=True)
    if args.only is not None:
        problems = [problem(seed, args.only, simulate=choice) for choice in (False, True)]
    else:
        problems = _sweep(seed)
    problems = [text for text in problems if text]
    print(*problems, f"{len(problems)} problems", sep="\n")
    return 1 if problems else 0


def _sweep(seed):
    """The problems of all Configs; prints the progress."""
    start, texts = time.monotonic(), []
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        runs = {
            pool.submit(problem, seed, number, simulate=number < SIMULATED): number
            for number in range(CONFIGS)
        }
        for done, run in enumerate(as_completed(runs), 1):
            texts.append(run.result())
            minutes = (time.monotonic() - start) / done * (CONFIGS - done) / 60
            name = config_of(seed, runs[run]).name
            action = "simulated" if runs[run] < SIMULATED else "linted"
            print(
                f"{done:3}/{CONFIGS}  {name:24} {action:10}  {'FAILED' if texts[-1] else 'ok':6}"
                f"  {minutes:.0f} min left", flush=True,
            )
    return texts


# By the name of the data type: operands, options and expected results of a product.
_DRAWS = DTYPES.layer("sweep", int8=_integers, bf16=_floats)


if __name__ == "__main__":
    sys.exit(main())
