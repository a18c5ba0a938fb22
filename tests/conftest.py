"""Shared fixtures: simulated accelerators, TFLite Micro, and random sums close to ties."""

import gc
import importlib.util
import os
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from weft.host import Accelerator
from weft.sim.transport import SimTransport

pytest_plugins = ["suite"]
os.environ.setdefault("WEFT_BUILD", str(Path(__file__).parent.parent / "build"))
LOW, HIGH = -(1 << 31), (1 << 31) - 1

# Elaboration creates millions of long-lived objects. With the default thresholds, garbage
# collection doubles the time of the tests.
gc.set_threshold(200_000, 20, 100)


@pytest.fixture(scope="session")
def transports():
    """``transports(config)``: the simulated transport of a Config, shared by all tests."""
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


@pytest.fixture(scope="session")
def tflm():
    """TFLite Micro, if it rounds twice: a build with single rounding implements another mode."""
    if importlib.util.find_spec("tflite_micro") is None:
        pytest.skip("TFLite Micro is not installed: its wheels are for Linux on x86_64")
    runtime = _TfliteMicro()
    # -0.5 in the second rounding, and 2**29 * 32.
    results = []
    for acc, scale in [(-2, 0.25), (1 << 29, 32)]:
        layer = SimpleNamespace(
            weights=np.ones((1, 1), np.int8), bias=np.array([acc], np.int32), x_scale=1,
            w_scale=scale, y_scale=1, x_zero_point=0, y_zero_point=0,
        )
        results.append(int(runtime.fully_connected([layer], [0])(np.zeros(1, np.int8))[0]))
    if results != [-1, 0]:
        pytest.skip(f"TFLite Micro must round twice and wrap, [-1, 0], not {results}")
    return runtime


@pytest.fixture(scope="session")
def tflite_models():
    """``tflite_models(schema)``: a builder of TFLite models with a runtime's generated schema."""
    return _TfliteModels


class _TfliteModels:
    """Builds TFLite models as bytes; ``s`` is the generated schema."""

    def __init__(self, schema):
        self.s = schema

    def model(self, tensors, code, operators, kind=0):
        """A model with a sequence of operators ``code``.

        A tensor is (shape, type, scales, zero point, data or None); the first one is the input of
        the model. An operator is (inputs, output, options), with tensors by number.
        """
        import flatbuffers

        s = self.s
        graph, operator_code, model = s.SubGraphT(), s.OperatorCodeT(), s.ModelT()
        graph.tensors, graph.operators, buffers = [], [], [s.BufferT()]
        for shape, dtype, scales, zero_point, data in tensors:
            tensor = s.TensorT()
            tensor.shape, tensor.type, tensor.buffer = list(shape), dtype, 0
            tensor.quantization = s.QuantizationParametersT()
            tensor.quantization.scale = np.atleast_1d(np.float32(scales))
            tensor.quantization.zeroPoint = np.full(np.size(scales), zero_point, np.int64)
            if data is not None:
                buffers.append(s.BufferT())
                buffers[-1].data = np.frombuffer(data.tobytes(), np.uint8)
                tensor.buffer = len(buffers) - 1
            graph.tensors.append(tensor)
        for inputs, output, options in operators:
            operator = s.OperatorT()
            operator.opcodeIndex, operator.inputs, operator.outputs = 0, inputs, [output]
            operator.builtinOptions, operator.builtinOptionsType = options, kind
            graph.operators.append(operator)
        graph.inputs, graph.outputs = [0], graph.operators[-1].outputs
        operator_code.builtinCode = operator_code.deprecatedBuiltinCode = code
        operator_code.version = 4
        model.version, model.subgraphs, model.buffers = 3, [graph], buffers
        model.operatorCodes = [operator_code]
        builder = flatbuffers.Builder(4096)
        builder.Finish(model.Pack(builder), b"TFL3")
        return bytes(builder.Output())

    def fully_connected(self, layers, activations, rows=1):
        """A model with a sequence of layers, each with its fused activation function.

        Of each `weft.demo.Layer`, the scales, zero points, weights and bias are used.
        """
        s, int8 = self.s, self.s.TensorType.INT8
        first = layers[0]
        tensors = [((rows, first.weights.shape[1]), int8, first.x_scale, first.x_zero_point, None)]
        operators = []
        for layer, activation in zip(layers, activations, strict=True):
            options = s.FullyConnectedOptionsT()
            options.fusedActivationFunction = activation
            x, count = len(tensors) - 1, len(layer.bias)
            scale = np.float32(layer.x_scale) * np.float32(layer.w_scale)
            operators.append(([x, x + 1, x + 2], x + 3, options))
            tensors += [
                (layer.weights.shape, int8, layer.w_scale, 0, layer.weights),
                (layer.bias.shape, s.TensorType.INT32, scale, 0, layer.bias),
                ((rows, count), int8, layer.y_scale, layer.y_zero_point, None),
            ]
        code, kind = s.BuiltinOperator.FULLY_CONNECTED, s.BuiltinOptions.FullyConnectedOptions
        return self.model(tensors, code, operators, kind)


class _TfliteMicro:
    """Builds models and runs them on TFLite Micro; ``s`` is the schema of its models."""

    def __init__(self):
        from tflite_micro import runtime
        from tflite_micro.tensorflow.lite.micro.python import schema_py_generated

        self._runtime = runtime
        self.s = schema_py_generated
        self._models = _TfliteModels(schema_py_generated)

    def model(self, *parts):
        """``run(x)`` of a `_TfliteModels.model`, for one ``x`` without its batch."""
        return self._runner(self._models.model(*parts))

    def fully_connected(self, layers, activations):
        """``run(x)`` of a `_TfliteModels.fully_connected`, for one ``x`` without its batch."""
        return self._runner(self._models.fully_connected(layers, activations))

    def _runner(self, model):
        interpreter = self._runtime.Interpreter.from_bytes(
            model, arena_size=20 * len(model) + 20_000
        )

        def run(x):
            interpreter.set_input(x[None], 0)
            interpreter.invoke()
            return interpreter.get_output(0)[0].copy()

        return run


@pytest.fixture
def sums():
    """``sums(rng, scale)``: random int32 of all sizes for each scale, most of them near a tie."""
    return _sums


@pytest.fixture
def triples():
    """``triples(rng, count)``: random int32 vectors of sums, multipliers and shifts."""
    return _triples


def _sums(rng, scale):
    count = len(scale)
    kinds = np.array([
        rng.integers(LOW, HIGH, count, endpoint=True) >> rng.integers(0, 32, count),
        _near(rng, scale, (rng.integers(-300, 300, count) + 0.5)),  # ties of 8-bit results
        _near(rng, scale, (rng.integers(-(1 << 30), 1 << 30, count) >> 8) + 0.5),
        _near(rng, scale, rng.choice([LOW, HIGH], count)),          # where results exceed int32
        rng.choice([LOW, LOW + 1, -2, -1, 0, 1, 2, HIGH - 1, HIGH], count),
        rng.choice([-1, 1], count) * (1 << rng.integers(0, 31, count)),
    ])
    return kinds[rng.integers(0, len(kinds), count), np.arange(count)].astype(np.int32)


def _near(rng, scale, result):
    """The sum whose scaled value is next to ``result``, or a neighbour of that sum."""
    exact = np.rint(result / scale) + rng.integers(-1, 2, len(scale))
    return np.clip(exact, LOW, HIGH).astype(np.int64)


def _triples(rng, count):
    kinds = np.array([
        rng.integers(1 << 30, HIGH, count, endpoint=True),
        rng.choice([1 << 30, (1 << 30) + 1, 3 << 29, HIGH - 1, HIGH], count),
        (1 << 30) + (1 << rng.integers(0, 30, count)),
        np.full(count, 1 << 30),  # a power of two: exact ties
    ])
    multiplier = kinds[rng.integers(0, len(kinds), count), np.arange(count)]
    shift = rng.integers(-31, 31, count, endpoint=True)
    acc = _sums(rng, multiplier * 2.0 ** (shift - 31))
    multiplier[rng.random(count) < 0.01] = 0
    return acc, multiplier.astype(np.int32), shift.astype(np.int32)
