"""Graphs that are quantized with PT2E: exact int8 products with scales and zero points."""

import importlib

import numpy as np
import pytest
from offload_cores import INT8, CountingTransport

from weft import Accelerator
from weft.golden import matmul

torch = pytest.importorskip("torch", reason="needs the package torch: pip install torch")
weft_torch = pytest.importorskip("weft.torch")
# The operators of quantized graphs.
pytest.importorskip("torch.ao.quantization.fx._decomposed")
F = torch.nn.functional
ops = torch.ops.quantized_decomposed
RANGE = {torch.int8: (-128, 127), torch.uint8: (0, 255)}


def compiled(f, accelerator):
    options = {"accelerator": accelerator, "dtype": accelerator.config.dtype}
    return torch.compile(f, backend="weft", options=options, fullgraph=True)


def integers(rng, dtype, *shape):
    low, high = RANGE[dtype]
    return torch.tensor(rng.integers(low, high + 1, shape)).to(dtype)


def floats_of(values, scale, zero):
    return ops.dequantize_per_tensor(values, scale, zero, *RANGE[values.dtype], values.dtype)


def channels_of(values, scales, zeros, axis=0):
    return ops.dequantize_per_channel(values, scales, zeros, axis, -128, 127, torch.int8)


def golden(x, x_zero, w, w_zero, scale):
    """``float32((x - x_zero) @ (w - w_zero)) * scale`` from golden products of int8."""
    if x.dtype == torch.uint8:
        x, x_zero = (x.to(torch.int16) - 128).to(torch.int8), x_zero - 128
    sums = np.int64(matmul(np.asarray(x), np.asarray(w)))
    x, w = np.int64(x), np.int64(w)
    sums = sums - x_zero * w.sum(-2, keepdims=True) - w_zero * x.sum(-1, keepdims=True)
    return np.float32(sums + x.shape[-1] * x_zero * w_zero) * scale


def same(found, wanted):
    assert found.dtype == torch.float32
    assert np.array_equal(found.numpy().view("u4"), np.float32(wanted).view("u4"))


def on_weft(accelerator, calls=1):
    report = weft_torch.report(accelerator)
    assert sum(row.calls for row in report.on_weft) == calls and report.reasons() == []
    kept = {row.operator.kind for row in report.rows if not row.operator.on_weft}
    assert not any(kind.startswith("dequantize") for kind in kept)


def test_weights_are_sent_once(rng):
    """Of int8, and of uint8, which become int8; transposed, as a layer has them."""
    transport = CountingTransport(INT8)
    x = integers(rng, torch.uint8, 3, 33)

    class Layer(torch.nn.Module):
        def __init__(self, dtype):
            super().__init__()
            self.register_buffer("w", integers(rng, dtype, 4, 33))

        def forward(self, x):
            return F.linear(floats_of(x, 0.5, 90), floats_of(self.w, 0.25, 3))

    for dtype in (torch.int8, torch.uint8):
        layer = Layer(dtype)
        f = compiled(layer, Accelerator(transport))
        w = layer.w.t().to(torch.int32) - 128 * (dtype == torch.uint8)
        zero = 3 - 128 * (dtype == torch.uint8)
        want = golden(x, 90, w.to(torch.int8), zero, np.float32(0.125))
        for loads in ([18 * 8], [], []):  # a panel with 33 of k: 17 words of 8 bytes, in pairs
            same(f(x), want)
            assert transport.taken() == loads


SX, SW = np.float32(0.017), np.float32([0.003, 0.25, 1.5, 0.04])
SCALE = float(SX)


@pytest.mark.parametrize("dtype, zero", [
    (torch.int8, 0), (torch.int8, -30), (torch.int8, 127), (torch.uint8, 0), (torch.uint8, 95),
])
def test_layers(dtype, zero, int8, rng):
    x, w = integers(rng, dtype, 5, 33), integers(rng, torch.int8, 4, 33)
    bias = torch.tensor(rng.normal(size=4), dtype=torch.float32)
    scales, zeros = torch.tensor(SW), torch.tensor([0, 0, 3, -7])

    def f(x, w, bias):
        return F.linear(floats_of(x, SCALE, zero), channels_of(w, scales, zeros), bias)

    y = compiled(f, int8)(x, w, bias)
    same(y, golden(x, zero, w.t(), zeros.numpy(), SX * SW) + bias.numpy())
    assert torch.allclose(y, f(x, w, bias), rtol=1e-4, atol=1e-3)
    on_weft(int8)


def test_batches_and_views(int8, rng):
    x, w = integers(rng, torch.int8, 2, 3, 4, 5), integers(rng, torch.int8, 5, 6)

    def f(x, w):
        x = floats_of(x, 0.5, 1).transpose(1, 2).reshape(8, 3, 5)
        w = floats_of(w, 2.0, -1).unsqueeze(0).expand(8, -1, -1)
        return torch.bmm(x, w)

    rows = x.transpose(1, 2).reshape(8, 3, 5)
    same(compiled(f, int8)(x, w), golden(rows, 1, torch.stack([w] * 8), -1, np.float32(1)))
    on_weft(int8)


def test_scales_that_are_computed(int8, rng):
    x = torch.tensor(rng.normal(size=(3, 8)), dtype=torch.float32)
    w = integers(rng, torch.int8, 8, 4)

    def f(x, w):
        scale, zero = ops.choose_qparams.tensor(x, -128, 127, 1e-5, torch.int8)
        q = ops.quantize_per_tensor.tensor(x, scale, zero, -128, 127, torch.int8)
        x = ops.dequantize_per_tensor.tensor(q, scale, zero, -128, 127, torch.int8)
        return x @ floats_of(w, 0.5, 0)

    scale, zero = ops.choose_qparams.tensor(x, -128, 127, 1e-5, torch.int8)
    q = ops.quantize_per_tensor.tensor(x, scale, zero, -128, 127, torch.int8)
    factor = np.float32(scale.item()) * np.float32(0.5)
    same(compiled(f, int8)(x, w), golden(q, zero.item(), w, 0, factor))
    on_weft(int8)


@pytest.mark.parametrize("dtype, zero, given", [
    (torch.int8, 0, {"padding": 1}), (torch.int8, -30, {"padding": (2, 1), "stride": 2}),
    (torch.uint8, 95, {"padding": 1, "groups": 2}), (torch.int8, 5, {"dilation": 2}),
    (torch.int8, 0, {"transposed": True}),
])
def test_convolutions(dtype, zero, given, int8, rng):
    """The expected sums are PyTorch's, of exact integers in float64."""
    given = dict(given)
    transposed = given.pop("transposed", False)
    conv = F.conv_transpose2d if transposed else F.conv2d
    shape = (4, 4) if transposed else (4, 4 // given.get("groups", 1))
    x, w = integers(rng, dtype, 2, 4, 5, 6), integers(rng, torch.int8, *shape, 3, 2)
    scales, zeros, axis = torch.tensor(SW), torch.zeros(4, dtype=torch.int64), int(transposed)

    def f(x, w):
        return conv(floats_of(x, SCALE, zero), channels_of(w, scales, zeros, axis), **given)

    sums = conv(x.double() - zero, w.double(), **given).numpy()
    same(compiled(f, int8)(x, w), np.float32(sums) * (SX * SW).reshape(-1, 1, 1))
    on_weft(int8)


NOT_BOTH = (
    "the graph is quantized, and its operands are not both int8 or uint8 values with a scale"
)
REFUSED = {
    "weights alone": (lambda x, w: x.float() @ floats_of(w, 0.5, 0), "mm", NOT_BOTH),
    "through an operator": (
        lambda x, w: floats_of(x, 0.5, 0).relu() @ floats_of(w, 0.5, 0), "mm", NOT_BOTH),
    "a scale for each k": (
        lambda x, w: floats_of(x, 0.5, 0) @ channels_of(w, torch.ones(4), torch.zeros(4)), "mm",
        "its second operand has a scale along axis 0, not along the results"),
    "a scale for each row": (
        lambda x, w: channels_of(x, torch.ones(4), torch.zeros(4)) @ floats_of(w, 0.5, 0), "mm",
        "its first operand has a scale for each channel"),
    "a view": (
        lambda x, w: floats_of(x, 0.5, 0) @ channels_of(
            w.reshape(2, 8), torch.ones(2), torch.zeros(2)).reshape(4, 4), "mm",
        "view is between it and an operand with a scale for each channel"),
    "vector": (lambda x, w: floats_of(x, 0.5, 0) @ floats_of(w, 0.5, 0)[0], "mv", NOT_BOTH),
    "zero point of a kernel": (
        lambda x, w: F.conv1d(floats_of(x, 0.5, 0)[None], floats_of(w, 0.5, 3)[..., None]),
        "convolution", "the kernel has a zero point other than 0"),
    "zero point, transposed": (
        lambda x, w: F.conv_transpose1d(
            floats_of(x, 0.5, 3)[None], floats_of(w, 0.5, 0)[..., None], stride=2),
        "convolution", "it is transposed, and the map has a zero point"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_other_patterns_stay_in_pytorch(name, int8, rng):
    f, kind, reason = REFUSED[name]
    x, w = integers(rng, torch.int8, 4, 4), integers(rng, torch.int8, 4, 4)
    assert torch.equal(compiled(f, int8)(x, w), f(x, w))
    report = weft_torch.report(int8)
    assert report.on_weft == () and report.reasons() == [f"on PyTorch: {kind}: {reason}"]


def test_a_bf16_core_computes_the_floats(bf16, rng):
    x, w = (integers(rng, torch.int8, 4, 4) for _ in range(2))

    def f(x, w):
        return floats_of(x, 0.5, 0) @ floats_of(w, 2.0, 0)

    assert torch.equal(compiled(f, bf16)(x, w), f(x, w))  # exact in bfloat16 and float32
    assert weft_torch.report(bf16).macs == 64


class Classifier(torch.nn.Module):
    """A convolution and a dense layer."""

    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(1, 4, 3, padding=1, stride=2)
        self.dense = torch.nn.Linear(36, 3)

    def forward(self, x):
        return self.dense(self.conv(x).relu().flatten(1))


def pt2e():
    """PT2E's steps and a quantizer, from where this PyTorch has them."""
    old = "torch.ao.quantization"
    for steps, quantizer in (
        (f"{old}.quantize_pt2e", f"{old}.quantizer.xnnpack_quantizer"),
        ("torchao.quantization.pt2e.quantize_pt2e", "torchao.testing.pt2e._xnnpack_quantizer"),
    ):
        try:
            return importlib.import_module(steps), importlib.import_module(quantizer)
        except ModuleNotFoundError:
            continue
    pytest.skip("PT2E is not installed: newer releases of PyTorch have it in torchao")


@pytest.mark.filterwarnings("ignore")  # of PT2E
@pytest.mark.parametrize("per_channel", [False, True])
def test_a_network_that_pt2e_quantizes(per_channel, rng):
    steps, quantizers = pt2e()
    transport = CountingTransport(INT8)
    int8 = Accelerator(transport)
    torch.manual_seed(0)
    x = torch.tensor(rng.normal(size=(2, 1, 6, 6)), dtype=torch.float32)
    quantizer = quantizers.XNNPACKQuantizer().set_global(
        quantizers.get_symmetric_quantization_config(is_per_channel=per_channel))
    model = steps.prepare_pt2e(torch.export.export(
        Classifier().eval(), (x,), strict=True).module(), quantizer)
    model(x)
    model = steps.convert_pt2e(model)
    with torch.no_grad():
        on_core, wanted = compiled(model, int8), model(x)
        y = on_core(x)
        # Panels of 4 columns, words of 2 of k, 8 bytes each: 9 of k and 4 columns, 36 and 3.
        # The stream has words of 16 bytes.
        assert transport.taken() == [5 * 8 + 8, 18 * 8]
        assert torch.equal(on_core(x), y) and transport.taken() == []  # the weights have stayed
    # Both are multiples of one scale: a float32 sum may round another way, at most by one step.
    step = np.unique(np.abs(np.diff(np.unique(wanted.numpy())))).min()
    assert (y - wanted).abs().max() <= 1.01 * step
    report = weft_torch.report(int8)
    kinds = [row.operator.kind for row in report.on_weft]
    assert kinds == ["convolution", "addmm"] and report.reasons() == []
