"""Products of PyTorch on a core: each result, and each gradient, is a chain of FMA."""

import numpy as np
import pytest
from ml_dtypes import bfloat16
from offload_cores import INT8, CountingTransport

from weft import Accelerator, Config
from weft.golden import matmul, matmul_bf16
from weft.offload.quantization import quantized
from weft.sim.transport import SimTransport

torch = pytest.importorskip("torch", reason="needs the package torch: pip install torch")
weft_torch = pytest.importorskip("weft.torch")
F = torch.nn.functional


def chain(a, b):
    """The golden products of float32 operands [..., M, K] and [..., K, N]."""
    return matmul_bf16(*(np.ascontiguousarray(x, np.float32).astype(bfloat16) for x in (a, b)))


def floats(rng, *shape):
    """Values of both signs and of many magnitudes, with zeros of both signs."""
    values = np.asarray(rng.normal(size=shape) * np.exp2(rng.integers(-8, 9, shape)))
    values[rng.random(shape) < 0.1] = -0.0
    return values.astype(np.float32)


def same(found, wanted):
    found = found.detach().numpy()
    assert found.dtype == wanted.dtype and found.shape == wanted.shape
    assert np.array_equal(found.view("u4"), np.asarray(wanted, order="C").view("u4"))


def compiled(f, accelerator, dtype="bf16", **given):
    options = {"accelerator": accelerator, "dtype": dtype}
    return torch.compile(f, backend="weft", options=options, fullgraph=True, **given)


def all_on_weft(accelerator):
    report = weft_torch.report(accelerator)
    assert report.on_weft and report.reasons() == []
    assert all(row.calls for row in report.on_weft)
    return report


def run(f, accelerator, *arrays):
    """The result and the gradients of a function, and the cotangent."""
    inputs = [torch.tensor(x, requires_grad=True) for x in arrays]
    y = compiled(f, accelerator)(*inputs)
    ct = torch.tensor(floats(np.random.default_rng(1), *y.shape))
    return y, torch.autograd.grad(y, inputs, ct), ct.numpy()


def sides(x):
    """A transposed matrix, or a batch of them."""
    return np.swapaxes(x, -1, -2)


@pytest.mark.parametrize("name, a_shape, b_shape", [
    ("mm", (3, 7), (7, 5)), ("bmm", (2, 3, 9), (2, 9, 4)), ("mm", (1, 1), (1, 1)),
])
def test_products_and_their_gradients(name, a_shape, b_shape, bf16, rng):
    a, b = floats(rng, *a_shape), floats(rng, *b_shape)
    y, (da, db), ct = run(getattr(torch, name), bf16, a, b)
    same(y, chain(a, b))
    same(da, chain(ct, sides(b)))
    same(db, chain(sides(a), ct))
    rows = all_on_weft(bf16).on_weft  # equal ones are one row
    assert {row.operator.kind for row in rows} == {name} and sum(row.calls for row in rows) == 3


@pytest.mark.parametrize("beta, alpha", [(1, 1), (0, 1), (2, 3), (0.5, -1)])
@pytest.mark.parametrize("name, c_shape, shapes", [
    ("addmm", (5,), ((3, 7), (7, 5))), ("addmm", (3, 5), ((3, 7), (7, 5))),
    ("baddbmm", (2, 3, 5), ((2, 3, 7), (2, 7, 5))), ("addmv", (3,), ((3, 7), (7,))),
])
def test_sums_with_products(name, c_shape, shapes, beta, alpha, bf16, rng):
    c, (a, b) = floats(rng, *c_shape), (floats(rng, *shape) for shape in shapes)
    y, (dc, da, db), ct = run(
        lambda c, a, b: getattr(torch, name)(c, a, b, beta=beta, alpha=alpha), bf16, c, a, b
    )
    product = chain(a, b) if b.ndim > 1 else chain(a, b[:, None])[:, 0]
    want = np.float32(alpha) * product
    if beta:
        want = want + np.float32(beta) * c
    same(y, want)
    if alpha == beta == 1:
        if b.ndim > 1:
            same(da, chain(ct, sides(b)))
        same(db, chain(sides(a), ct) if b.ndim > 1 else chain(sides(a), ct[:, None])[:, 0])
    all_on_weft(bf16)


def test_c_that_is_not_read_has_no_effect(bf16):
    c, a = torch.full((2, 2), torch.nan), torch.eye(2)
    f = compiled(lambda c, a: torch.addmm(c, a, a, beta=0), bf16)
    assert torch.equal(f(c, a), a)


def test_vectors_and_layers(bf16, rng):
    a, v, w, bias = floats(rng, 4, 7), floats(rng, 7), floats(rng, 7), floats(rng, 4)
    same(run(torch.mv, bf16, a, v)[0], chain(a, v[:, None])[:, 0])
    same(run(torch.dot, bf16, v, w)[0], chain(v[None], w[:, None])[0, 0])
    x = floats(rng, 2, 3, 7)
    y, (dx, da, dbias), ct = run(F.linear, bf16, x, a, bias)
    same(y, (chain(x.reshape(6, 7), a.T) + bias).reshape(2, 3, 4))
    same(dx, chain(ct.reshape(6, 4), a).reshape(2, 3, 7))
    same(da, chain(ct.reshape(6, 4).T, x.reshape(6, 7)))
    same(run(F.linear, bf16, v, a, bias)[0], chain(v[None], a.T)[0] + bias)
    b = floats(rng, 3, 4, 6)
    batch = floats(rng, 3, 5, 4)
    c = floats(rng, 5, 6)
    whole = chain(batch.transpose(1, 0, 2).reshape(5, 12), b.reshape(12, 6))
    same(run(torch.addbmm, bf16, c, batch, b)[0], c + whole)
    all_on_weft(bf16)


@pytest.mark.parametrize("name", ["bfloat16", "float16"])
def test_types(name, bf16, rng):
    dtype = getattr(torch, name)
    a, b, c = (torch.tensor(floats(rng, *s)).to(dtype) for s in ((5, 9), (9, 4), (4,)))
    product = chain(a.float().numpy(), b.float().numpy())
    y = compiled(torch.mm, bf16)(a, b)
    assert torch.equal(y, torch.tensor(product).to(dtype))
    y = compiled(torch.addmm, bf16)(c, a, b)
    assert torch.equal(y, torch.tensor(product + c.float().numpy()).to(dtype))  # rounded once


CONVOLUTIONS = [  # map, kernel, stride, padding, dilation, groups, transposed, output padding
    ((2, 4, 7), (6, 4, 3), (2,), (1,), (1,), 1, False, (0,)),
    ((2, 4, 6, 5), (6, 2, 3, 2), (2, 1), (1, 0), (1, 2), 2, False, (0, 0)),
    ((1, 4, 6, 5), (4, 1, 2, 2), (3, 2), (0, 1), (2, 1), 4, False, (0, 0)),
    ((2, 2, 4, 3, 3), (3, 2, 2, 1, 2), (1, 2, 1), (1, 0, 1), (1, 1, 2), 1, False, (0, 0, 0)),
    ((2, 4, 5), (4, 3, 3), (2,), (1,), (1,), 1, True, (1,)),
    ((1, 4, 4, 3), (4, 3, 2, 3), (2, 3), (1, 2), (2, 1), 2, True, (1, 0)),
    ((2, 2, 3, 2, 2), (2, 1, 2, 2, 1), (2, 1, 2), (0, 1, 0), (1, 1, 1), 1, True, (0, 0, 1)),
]


def terms(x_shape, w_shape, y_shape, stride, padding, dilation, groups, transposed):
    """All products of a convolution: positions in x, w and y, by the definition in PyTorch.

    ``y[n, o, p] += x[n, c, p * stride + q * dilation - padding] * w[o, c, q]``; in a transposed one
    x and y change places, and the first two axes of w.
    """
    seen, moved = (y_shape, x_shape) if transposed else (x_shape, y_shape)
    inner, outer = seen[1] // groups, moved[1] // groups
    for n in range(x_shape[0]):
        for p in np.ndindex(*moved[2:]):
            for q in np.ndindex(*w_shape[2:]):
                at = tuple(
                    a * s + b * d - pad
                    for a, s, b, d, pad in zip(p, stride, q, dilation, padding, strict=True)
                )
                if all(0 <= i < size for i, size in zip(at, seen[2:], strict=True)):
                    for g in range(groups):
                        for c in range(inner):
                            for o in range(outer):
                                there = n, g * inner + c, *at
                                here = n, g * outer + o, *p
                                x, y = (here, there) if transposed else (there, here)
                                yield x, (g * outer + o, c, *q), y


def chains(shape, of, key):
    """Chains of FMA for each place of a result, from (place, order, a, b)."""
    works = {}
    for place, order, a, b in of:
        works.setdefault(place, []).append((key(order), a, b))
    y = np.zeros(shape, np.float32)
    for place, work in works.items():
        work.sort(key=lambda entry: entry[0])
        _, a, b = (np.float32(column) if n else column for n, column in enumerate(zip(
            *work, strict=True)))
        y[place] = chain(a[None], b[:, None])[0, 0]
    return y


@pytest.mark.parametrize("case", CONVOLUTIONS)
def test_convolutions_are_chains(case, bf16, rng):
    """The sums run over the kernel, and the channels innermost; those of the gradient of the
    kernel run over the positions, and the images innermost. The kernel of a transposed
    convolution, and of the gradient of a map, is turned around.
    """
    x_shape, w_shape, stride, padding, dilation, groups, transposed, more = case
    x, w = floats(rng, *x_shape), floats(rng, *w_shape)

    def conv(x, w):
        return torch.ops.aten.convolution(
            x, w, None, stride, padding, dilation, transposed, more, groups
        )

    y, (dx, dw), ct = run(conv, bf16, x, w)
    every = list(terms(x_shape, w_shape, y.shape, stride, padding, dilation, groups, transposed))
    seen = x_shape if not transposed else y.shape
    positions = len(seen) - 2

    def forwards(order):  # kernel position, channel
        return order

    def backwards(order):
        return (*(-q for q in order[:positions]), *order[positions:])

    first, second = (backwards, forwards) if transposed else (forwards, backwards)
    same(y, chains(y.shape, ((c, (*b[2:], a[1]), x[a], w[b]) for a, b, c in every), first))
    same(dx, chains(x_shape, ((a, (*b[2:], c[1]), ct[c], w[b]) for a, b, c in every), second))
    moved = 0 if transposed else 2
    same(dw, chains(w_shape, (
        (b, (*(a, b, c)[moved][2:], a[0]), x[a], ct[c]) for a, b, c in every
    ), forwards))
    report = all_on_weft(bf16)
    kinds = [row.operator.kind for row in report.on_weft]
    assert kinds == ["convolution"] + ["convolution_backward"] * 2
    assert all(row.operator.name.startswith(f"{side} gradient of ") for row, side in zip(
        report.on_weft[1:], ("input", "weight"), strict=True))


def test_layers_of_convolutions(bf16, rng):
    """Small integers are exact: the results are PyTorch's, with its layouts."""
    layers = [
        torch.nn.Conv2d(4, 6, 3, padding="same"), torch.nn.Conv2d(4, 8, 2, groups=4),
        torch.nn.Conv2d(4, 2, 1, stride=5), torch.nn.ConvTranspose2d(4, 2, 3, 2, 1, 1),
    ]
    for layer, layout in zip(layers, [torch.channels_last, torch.contiguous_format] * 2,
                             strict=True):
        for p in layer.parameters():
            p.data = torch.tensor(rng.integers(-3, 4, p.shape), dtype=torch.float32)
        x = torch.tensor(rng.integers(-3, 4, (2, 4, 6, 7)), dtype=torch.float32)
        x = x.to(memory_format=layout).requires_grad_()
        y, wanted = compiled(layer, bf16)(x), layer(x)
        assert torch.equal(y, wanted) and y.stride() == wanted.stride()
        inputs = [x, *layer.parameters()]
        for a, b in zip(torch.autograd.grad(y.square().sum(), inputs),
                        torch.autograd.grad(wanted.square().sum(), inputs), strict=True):
            assert torch.equal(a, b)
    inputs = [x, layers[0].weight]

    def short(x, w):
        return torch.ops.aten.convolution(x, w, None, [2], [1], [1], False, [0], 1)

    found = torch.autograd.grad(compiled(short, bf16)(*inputs).square().sum(), inputs)
    wanted = F.conv2d(*inputs, stride=2, padding=1).square().sum()
    for a, b in zip(found, torch.autograd.grad(wanted, inputs), strict=True):
        assert torch.equal(a, b)
    with torch.no_grad():
        one = compiled(layers[0], bf16)(x[0])
    assert torch.equal(one, layers[0](x[0]))
    all_on_weft(bf16)


def test_subnormal_numbers(bf16):
    """Also where the user lets PyTorch make them 0: the core keeps them."""
    values = np.float32([np.inf, -np.inf, np.nan, 3e38, 1e-40, -3e-39, 1.5e-20, -0.0, 0.0, 1])
    a, b = values[:, None], values[None]
    with np.errstate(invalid="ignore"):
        want = chain(a, b)
    for flush in (False, True):
        torch.set_flush_denormal(flush)
        try:
            same(compiled(torch.mm, bf16)(torch.tensor(a), torch.tensor(b)), want)
        finally:
            torch.set_flush_denormal(False)


def test_a_frozen_kernel_has_no_gradient(bf16, rng):
    layer = torch.nn.Conv2d(1, 2, 2)
    layer.weight.requires_grad_(False)
    x = torch.tensor(floats(rng, 1, 1, 3, 3))
    compiled(layer, bf16)(x).sum().backward()
    assert torch.equal(layer.bias.grad, torch.full((2,), 4.0))
    assert [row.operator.kind for row in all_on_weft(bf16).on_weft] == ["convolution"]


def test_int8_scales_rows_and_columns(int8, rng):
    a, b = floats(rng, 5, 33), floats(rng, 33, 6)
    qa, qb = quantized(a, (1,)), quantized(b, (0,))
    y = compiled(torch.mm, int8, "int8")(torch.tensor(a), torch.tensor(b))
    same(y, np.float32(matmul(qa.values, qb.values)) * (qa.scale * qb.scale))


def test_int8_parameters_are_quantized_once(int8, rng, monkeypatch):
    from weft.offload import products

    seen = []

    def counted(array, axes):
        seen.append(array.shape)
        return quantized(array, axes)

    monkeypatch.setattr(products, "quantized", counted)
    layer = torch.nn.Linear(9, 6)
    x = torch.tensor(floats(rng, 4, 9))
    f = compiled(layer, int8, "int8")

    def step():
        y = f(x.requires_grad_())
        y.sum().backward()
        return y.detach()

    first = step()
    assert torch.equal(step(), first)
    forward, of_x, of_w = (1, 9, 6), (1, 6, 9), (1, 6, 4)
    assert seen.count(forward) == 1 and seen.count(of_x) == 1 and seen.count(of_w) == 2
    seen.clear()
    with torch.no_grad():
        layer.weight += 1
    assert not torch.equal(step(), first) and seen.count(forward) == seen.count(of_x) == 1


class Exact(torch.nn.Module):
    """A product with int8 values of the module, and one of two inputs."""

    def __init__(self, rng):
        super().__init__()
        self.register_buffer("w", torch.tensor(rng.integers(-128, 128, (48, 16), np.int8)))

    def forward(self, x, y):
        return torch._int_mm(x, self.w), torch._int_mm(x, y)


def test_int8_buffers_are_sent_once(rng):
    transport = CountingTransport(INT8)
    model = Exact(rng)
    f = compiled(model, Accelerator(transport), "int8")
    x, y = (torch.tensor(rng.integers(-128, 128, s, np.int8)) for s in ((32, 48), (48, 24)))
    with torch.no_grad():
        for change in (0, 1):
            model.w ^= change
            sent = []
            for _ in range(3):
                for found, b in zip(f(x, y), (model.w, y), strict=True):
                    assert np.array_equal(found.numpy(), matmul(x.numpy(), b.numpy()))
                sent.append(sum(transport.taken()))
            # Panels of 4 columns with 48 of k: 24 words of 8 bytes each.
            assert sent == [(16 + 24) * 48, 24 * 48, 24 * 48]


def test_int8_sums_are_exact(int8, rng):
    a, b = (torch.tensor(rng.integers(-128, 128, s, np.int8)) for s in ((32, 48), (48, 16)))
    y = compiled(torch._int_mm, int8, "int8")(a, b)
    assert np.array_equal(y.numpy(), matmul(a.numpy(), b.numpy()))
    all_on_weft(int8)


def test_simulated_hardware(rng):
    a, b = floats(rng, 3, 5), floats(rng, 5, 4)
    config = Config(dtype="bf16", rows=2, cols=2, lanes=1)
    with Accelerator(SimTransport(config)) as core:
        y, (da, db), ct = run(torch.mm, core, a, b)
        same(y, chain(a, b))
        same(da, chain(ct, b.T))
        same(db, chain(a.T, ct))
