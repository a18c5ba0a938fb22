"""Trains a streaming network that hears one word, and runs it on the core of a board.

    python -m tools.train_wake_word [--out FOLDER] [--steps N]

Writes ``wake_word.tflite``. Each inference takes the newest two frames of the spectrogram, and
keeps the older ones in variables: as the wake words of microWakeWord, it has convolutions in time
over rings of frames, and CALL_ONCE gives the variables their first values. The voices are those of
`weft.demo.words`. The command prints how many words TensorFlow Lite Micro hears, whether the golden
model of the core has its bytes in ``N`` steps, and the cycles of a step.
"""

import argparse
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from tools.int8_files import NONE, RELU, calibrate, weights_and_bias
from tools.tflite_writer import OperatorSpec, TensorSpec, assign, handle, read, tflite_file
from weft.demo.words import BANDS, HOP, RATE, WORDS, log_bands, sentence
from weft.models.loading import load
from weft.models.target import target_of

__all__ = ["FRAMES", "WORD", "compared", "main", "network_file", "random_weights"]

WORD = "weft"
FRAMES = 2  # of a step: 40 ms
FIRST, KERNEL = 32, 4  # channels and frames of the first convolution
BLOCKS = (5, 48), (7, 48), (9, 48)  # steps of a depthwise convolution, channels of the next one
TAIL = 6  # steps that the last layer sees
BOARD = "ulx3s-25f"
SENTENCES, WORDS_EACH, SEED = 240, 5, 0
STEPS, BATCH, STEP_SIZE, LENGTH = 500, 24, 0.004, 64
HEARD, IGNORED = 0.4, 0.8  # seconds after the end of a word
FACTOR = 4.0  # of a loss of a step that must hear the word
SAME, VALID = 0, 1  # paddings of the schema


def examples(count, seed):
    """Spectrograms [frames, BANDS], and for each step 1: hear the word, 0: do not, -1: ignored."""
    rng, names, found = np.random.default_rng(seed), list(WORDS), []
    chances = [0.5 if name == WORD else 0.5 / (len(names) - 1) for name in names]
    for _ in range(count):
        words = [names[n] for n in rng.choice(len(names), WORDS_EACH, p=chances)]
        samples, times = sentence(
            words, rng, pause=rng.uniform(0.3, 0.8), noise=10 ** rng.uniform(-3.5, -1.5)
        )
        bands = log_bands(samples * rng.uniform(0.3, 1))
        bands = bands[: len(bands) // FRAMES * FRAMES]
        ends = (np.arange(len(bands) // FRAMES) + 1) * FRAMES * HOP / RATE
        wanted = np.zeros(len(ends))
        for word, (first, last) in zip(words, times, strict=True):
            if word == WORD:
                wanted[(ends > first) & (ends <= last + IGNORED)] = -1
                wanted[(ends > last) & (ends <= last + HEARD)] = 1
        found.append((bands, wanted))
    return found


def random_weights(seed):
    """Weights before the training, by name."""
    rng, shapes, channels = np.random.default_rng(seed), {"first": (KERNEL, BANDS, FIRST)}, FIRST
    for number, (steps, columns) in enumerate(BLOCKS):
        shapes |= {f"depth{number}": (steps, 1, channels), f"point{number}": (1, channels, columns)}
        channels = columns
    shapes["last"] = (TAIL, channels, 1)
    w = {}
    for name, shape in shapes.items():
        w[name] = jnp.float32(rng.normal(0, np.sqrt(2 / np.prod(shape[:-1])), shape))
        w[name + "_bias"] = jnp.zeros(shape[-1])
    return w


def forward(w, x):
    """All maps of spectrograms [batch, frames, BANDS], by name; each step sees the ones before."""
    def conv(x, name, stride=1):
        groups = x.shape[2] if w[name].shape[1] == 1 else 1
        before = w[name].shape[0] - stride
        y = jax.lax.conv_general_dilated(
            x, w[name], (stride,), [(before, 0)], dimension_numbers=("NWC", "WIO", "NWC"),
            feature_group_count=groups,
        )
        return y + w[name + "_bias"]

    maps = {"x": x, "first": jax.nn.relu(conv(x, "first", FRAMES))}
    y = maps["first"]
    for number in range(len(BLOCKS)):
        maps[f"depth{number}"] = conv(y, f"depth{number}")
        y = maps[f"point{number}"] = jax.nn.relu(conv(maps[f"depth{number}"], f"point{number}"))
    maps["last"] = conv(y, "last")
    return maps


def train(sounds):
    """The weights and biases, by name, after training with Adam."""
    rng = np.random.default_rng(SEED)

    def loss(w, x, wanted):
        logits = forward(w, x)["last"][..., 0]
        weight = jnp.where(wanted > 0, FACTOR, wanted == 0)
        each = jax.nn.softplus(jnp.where(wanted > 0, -logits, logits))
        return (each * weight).sum() / weight.sum()

    @jax.jit
    def step(w, mean, square, n, x, wanted):
        rate = STEP_SIZE * 0.5 * (1 + jnp.cos(jnp.pi * n / STEPS))
        g = jax.grad(loss)(w, x, wanted)
        mean = jax.tree.map(lambda m, g: m + 0.1 * (g - m), mean, g)
        square = jax.tree.map(lambda s, g: s + 0.001 * (g**2 - s), square, g)
        scaled = jax.tree.map(
            lambda m, s: m / (1 - 0.9**n) / (jnp.sqrt(s / (1 - 0.999**n)) + 1e-8), mean, square
        )
        return jax.tree.map(lambda w, change: w - rate * change, w, scaled), mean, square

    w = random_weights(SEED)
    mean = square = jax.tree.map(jnp.zeros_like, w)
    for n in range(1, STEPS + 1):
        parts = []
        for number in rng.integers(len(sounds), size=BATCH):
            bands, wanted = sounds[number]
            start = int(rng.integers(len(wanted) - LENGTH + 1))
            part = slice(start, start + LENGTH)
            parts.append((bands.reshape(len(wanted), -1)[part].reshape(-1, BANDS), wanted[part]))
        x, wanted = (np.stack(values) for values in zip(*parts, strict=True))
        # The first steps see zeros before the sound, as after a reset.
        w, mean, square = step(w, mean, square, float(n), x, wanted)
    return w


class _Writer:
    """Tensors and operators of the file; each variable has the steps that a layer still needs."""

    def __init__(self, w, x):
        maps = {name: np.asarray(value) for name, value in forward(w, x).items()}
        self.scales = {name: calibrate(value) for name, value in maps.items()}
        self.w = {name: np.asarray(value) for name, value in w.items()}
        self.tensors, self.operators = {}, []
        self.variables: dict[str, TensorSpec] = {}

    def map(self, name, rows, channels, like):
        self.tensors[name] = TensorSpec((1, rows, 1, channels), "int8", *self.scales[like])
        return name

    def ring(self, x, like, length, new):
        """The last ``length`` rows of a map: a variable has those before the ``new`` ones."""
        channels, old = self.tensors[x].shape[3], length - new
        variable, zero = f"ring_{x}", self.scales[like][1]
        self.tensors |= {
            f"h_{variable}": TensorSpec((), "resource"),
            f"{x}_begin": TensorSpec(data=np.int32([0, new, 0, 0])),
            f"{x}_end": TensorSpec(data=np.int32([1, length, 1, channels])),
            f"{x}_step": TensorSpec(data=np.int32([1, 1, 1, 1])),
        }
        self.variables[variable] = TensorSpec(
            data=np.full((1, old, 1, channels), zero, np.int8), scale=self.scales[like][0],
            zero=zero,
        )
        before, whole = self.map(f"{x}_old", old, channels, like), f"{x}_all"
        self.map(whole, length, channels, like)
        after = self.map(f"{x}_new", old, channels, like)
        slices = [whole, f"{x}_begin", f"{x}_end", f"{x}_step"]
        self.operators += [
            handle(variable), read(variable, before),
            OperatorSpec("CONCATENATION", [before, x], [whole], (
                "ConcatenationOptions", {"axis": 1},
            )),
            OperatorSpec("STRIDED_SLICE", slices, [after], ("StridedSliceOptions", {})),
            assign(variable, after),
        ]
        return whole

    def layer(self, name, x, like, relu=NONE):
        """A convolution over all rows of a map."""
        weights = self.w[name]
        rows, _, columns = weights.shape
        depthwise = weights.shape[1] == 1 and columns > 1
        shape = (1, rows, 1, columns) if depthwise else (columns, rows, 1, weights.shape[1])
        self.tensors |= weights_and_bias(
            name, weights.reshape(-1, columns), self.w[f"{name}_bias"], self.scales[like][0],
            3 if depthwise else 0, shape,
        )
        options = {
            "padding": VALID, "strideW": 1, "strideH": 1, "dilationWFactor": 1,
            "dilationHFactor": 1, "fusedActivationFunction": relu,
        }
        kind = ("DEPTHWISE_CONV_2D", "DepthwiseConv2DOptions") if depthwise else (
            "CONV_2D", "Conv2DOptions",
        )
        if depthwise:
            options["depthMultiplier"] = 1
        self.operators.append(OperatorSpec(
            kind[0], [x, f"{name}_weights", f"{name}_bias"], [self.map(name, 1, columns, name)],
            (kind[1], options), 3,
        ))
        return name

    def file(self, output):
        """The file, with a second subgraph that CALL_ONCE calls."""
        first = OperatorSpec("CALL_ONCE", [], [], ("CallOnceOptions", {"initSubgraphIndex": 1}))
        names = [f"h_{name}" for name in self.variables]
        values = self.variables | {name: TensorSpec((), "resource") for name in names}
        start = [part for name in self.variables for part in (handle(name), assign(name, name))]
        return tflite_file(
            self.tensors, [first, *self.operators], ["x"], [output],
            extra=[(values, start, [], [])],
            description=f"hears {WORD}; trained on sounds of weft.demo.words",
        )


def network_file(w, x) -> bytes:
    """The quantized network, calibrated on spectrograms [batch, frames, BANDS]."""
    writer = _Writer(w, x)
    writer.map("x", FRAMES, BANDS, "x")
    y = writer.layer("first", writer.ring("x", "x", KERNEL, FRAMES), "x", RELU)
    for number, (steps, _) in enumerate(BLOCKS):
        depth = writer.layer(f"depth{number}", writer.ring(y, y, steps, 1), y)
        y = writer.layer(f"point{number}", depth, depth, RELU)
    y = writer.layer("last", writer.ring(y, y, TAIL, 1), y)
    writer.tensors["score"] = TensorSpec((1, 1, 1, 1), "int8", scale=1 / 256, zero=-128)
    writer.operators.append(OperatorSpec("LOGISTIC", [y], ["score"]))
    return writer.file("score")


def steps_of(data, bands):
    """The inputs of a file, int8 [n, 1, FRAMES, 1, BANDS], for one spectrogram."""
    graph = load(data, "wake_word").graph
    given = graph.tensors[graph.inputs[0]].quantization
    x = bands[: len(bands) // FRAMES * FRAMES].reshape(-1, 1, FRAMES, 1, BANDS)
    values = np.rint(x / given.scale[0]) + given.zero[0]
    return np.clip(values, -128, 127).astype(np.int8)


def _micro(data, steps):
    """The outputs of TensorFlow Lite Micro, one inference after the other."""
    from tflite_micro import runtime

    interpreter = runtime.Interpreter.from_bytes(data, arena_size=1 << 20)
    outputs = []
    for step in steps:
        interpreter.set_input(step, 0)
        interpreter.invoke()
        outputs.append(np.array(interpreter.get_output(0)))
    return np.concatenate(outputs)


def compared(data: bytes, steps: np.ndarray) -> str:
    """Return the cycles of a step on the core of the board, for people.

    Raises ValueError if the network is more than one list, or if a byte of the golden model differs
    from TensorFlow Lite Micro.
    """
    target = target_of(BOARD, "networks")
    program = load(data, "wake_word").compile(target)
    if len(program.segments) != 1 or program.host or program.host_states:
        raise ValueError("the network must be one list, with all variables in the core")
    with program.open("golden") as session:
        outputs = session(steps[:, 0])
    expected = _micro(data, steps)
    different = int((outputs != expected).sum())
    if different:
        raise ValueError(f"{different} of {expected.size} bytes differ from TensorFlow Lite Micro")
    microseconds = 1e6 * target.core_seconds(program.cycles)
    return (
        f"{len(steps)} steps: one list each, all bytes equal TensorFlow Lite Micro;"
        f" {len(program.variables)} variables, {sum(step.jobs for step in program.layers)} jobs,"
        f" {program.cycles:,} cycles = {microseconds:.1f} us at {target.clock:g} MHz"
        f" ({target.name})"
    )


def heard(data, sounds):
    """Words that the network hears, all words, and false alarms; a word counts once."""
    right = total = false = 0
    for bands, wanted in sounds:
        found = _micro(data, steps_of(data, bands))[:, 0, 0, 0] >= 64  # 0.75
        starts = np.flatnonzero((wanted == 1) & (np.roll(wanted, 1) != 1))
        for start in starts:
            total += 1
            right += found[start : start + round(IGNORED * RATE / FRAMES / HOP)].any()
        false += (np.diff((found & (wanted == 0)).astype(int)) > 0).sum()
    return right, total, false


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path(), help="folder; default: this one")
    parser.add_argument("--steps", type=int, default=1000, help="steps that are compared")
    given = parser.parse_args()
    sounds, others = examples(SENTENCES, SEED), examples(SENTENCES // 8, SEED + 1)
    w = train(sounds)
    length = min(len(bands) for bands, _ in sounds)
    data = network_file(w, np.stack([bands[:length] for bands, _ in sounds[:50]]))
    path = given.out / "wake_word.tflite"
    path.write_bytes(data)
    right, total, false = heard(data, others)
    seconds = sum(len(bands) for bands, _ in others) * HOP / RATE
    print(
        f"{path}: {len(data)} bytes; hears {right} of {total} times {WORD!r} in {seconds:.0f} s of"
        f" sound, with {false} false alarms"
    )
    bands = np.concatenate([bands for bands, _ in others])
    print(compared(data, steps_of(data, bands)[: given.steps]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
