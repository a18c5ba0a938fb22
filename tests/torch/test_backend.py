"""The backend ``weft``: options, graphs, report, errors, threads.

Products of small integers are exact in bfloat16 and float32, so that PyTorch's results are expected
to the last bit; nothing but the products may differ.
"""

import gc
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor

import pytest

from weft import Accelerator, Config
from weft.golden import matmul
from weft.host import GoldenTransport
from weft.models.target import NetworkTarget
from weft.offload import OffloadError

torch = pytest.importorskip("torch", reason="needs the package torch: pip install torch")
weft_torch = pytest.importorskip("weft.torch")
F = torch.nn.functional


def integers(rng, *shape):
    return torch.tensor(rng.integers(-2, 3, shape), dtype=torch.float32)


def compiled(f, accelerator, dtype="bf16", **given):
    options = {"accelerator": accelerator, "dtype": dtype}
    return torch.compile(f, backend="weft", options=options, **given)


def test_the_name_of_the_backend_is_known():
    assert "weft" in torch._dynamo.list_backends()


def test_without_options_it_is_the_golden_bf16_core(rng):
    a = integers(rng, 3, 3)
    weft_torch.record().clear()
    assert torch.equal(torch.compile(torch.mm, backend="weft")(a, a), a @ a)
    report = weft_torch.report()
    assert report.target == "8x8x1_bf16" and report.macs == 27


@pytest.mark.parametrize("options, message", [
    ({"acelerator": 1}, "'acelerator'; did you mean accelerator?"),
    ({"x": 1}, "options of the backend weft must be accelerator and dtype, not 'x'"),
    ({"accelerator": "golden"}, "accelerator must be a weft.Accelerator, not 'golden'"),
    ({"dtype": "int8"}, "accelerator must be given in options where dtype is int8"),
    ({"dtype": "fp8"}, "dtype must be bf16 or int8, not 'fp8'"),
])
def test_rejects_options(options, message):
    with pytest.raises(Exception) as caught:
        torch.compile(torch.relu, backend="weft", options=options)(torch.ones(1))
    assert message in str(caught.value)


def test_rejects_another_type_or_no_accelerator(int8):
    with pytest.raises(Exception, match="dtype must be 'int8', the type of the core, not 'bf16'"):
        compiled(torch.relu, int8)(torch.ones(1))
    with pytest.raises(TypeError, match="accelerator must be a weft.Accelerator, not 3"):
        weft_torch.report(3)


FUNCTIONS = {
    "linear": lambda x, w: F.relu(x @ w) * 2,
    "einsum": lambda x, w: torch.einsum("ij,jk,kl->il", x, w, w),
    "in place": lambda x, w: (x @ w).add_(x).relu_() @ w,
    "views": lambda x, w: (x[1:] @ w.t()).t() @ x[1:],
    "checkpoint": lambda x, w: torch.utils.checkpoint.checkpoint(
        lambda x: (x @ w).clamp(-2, 2) @ w, x, use_reentrant=False),
    "vmap": lambda x, w: torch.func.vmap(torch.mv, (None, 0))(w, x),
    "grad inside": lambda x, w: torch.func.grad(lambda x: ((x @ w) ** 2).sum())(x),
}


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name, dynamic, bf16, rng):
    f = FUNCTIONS[name]
    g = compiled(f, bf16, dynamic=dynamic)
    for size in (3, 5) if dynamic else (3,):
        x = integers(rng, size, 4).requires_grad_()
        w = integers(rng, 4, 4).requires_grad_()
        y, wanted = g(x, w), f(x, w)
        assert torch.equal(y, wanted)
        for a, b in zip(torch.autograd.grad(y.sum(), [x, w]),
                        torch.autograd.grad(wanted.sum(), [x, w]), strict=True):
            assert torch.equal(a, b)
    report = weft_torch.report(bf16)
    assert report.macs and report.reasons() == []


def test_branches(bf16, rng):
    def f(x, w):
        return torch.cond(x.sum() > 0, lambda x, w: x @ w, lambda x, w: w @ x, (x, w))

    g, w = compiled(f, bf16), integers(rng, 3, 3)
    for x in (torch.ones(3, 3), -torch.ones(3, 3)):
        with torch.no_grad():
            assert torch.equal(g(x, w), f(x, w))
    report = weft_torch.report(bf16)
    assert sum(row.calls for row in report.on_weft) == 2 and report.reasons() == []


def test_attention_is_made_of_products(bf16, rng):
    q, k, v = (torch.tensor(rng.normal(size=(1, 2, 5, 4)), dtype=torch.float32, requires_grad=True)
               for _ in range(3))
    f = compiled(F.scaled_dot_product_attention, bf16, fullgraph=True)
    y, wanted = f(q, k, v), F.scaled_dot_product_attention(q, k, v)
    assert (y - wanted).abs().max() < 0.02
    y.sum().backward()
    report = weft_torch.report(bf16)
    assert sum(row.calls for row in report.on_weft) == 6 and report.reasons() == []


def test_what_the_core_cannot_compute_runs_in_pytorch(bf16, int8, rng):
    x = torch.tensor(rng.integers(-9, 9, (3, 3)))
    empty = torch.ones(0, 3)
    f = compiled(lambda x, e: (x @ x, x.double() @ x.double(), e @ e.new_ones(3, 2)), bf16)
    y, double, nothing = f(x, empty)
    assert torch.equal(y, x @ x) and torch.equal(double, (x @ x).double())
    assert nothing.shape == (0, 2)
    report = weft_torch.report(bf16)
    assert report.on_weft == () and report.cycles == 0
    known = "the core computes products of float32, float16 and bfloat16"
    assert report.reasons() == [
        f"on PyTorch: mm: int64 x int64 -> int64: {known}",
        f"on PyTorch: mm: float64 x float64 -> float64: {known}",
        "on PyTorch: mm: the product is empty",
    ]
    long = torch.ones(1, 1 << 17)
    assert compiled(torch.mm, int8, "int8")(long, long.t()).item() == 1 << 17
    assert weft_torch.report(int8).reasons() == [
        "on PyTorch: mm: K must be at most 131071 with int8, not 131072"
    ]


def test_tensors_without_values_stay_in_pytorch(bf16):
    x, w = torch.ones(3, 4, device="meta"), torch.ones(4, 2)
    y = compiled(torch.mm, bf16)(x, w.to("meta"))
    assert y.is_meta and y.shape == (3, 2)
    layer = torch.nn.Conv2d(1, 2, 2, device="meta")
    assert compiled(layer, bf16)(torch.ones(1, 1, 3, 3, device="meta")).shape == (1, 2, 2, 2)
    reason = "tensors of the device meta have no values"
    assert weft_torch.report(bf16).reasons() == [
        f"on PyTorch: {kind}: {reason}" for kind in ("mm", "convolution")
    ]
    assert torch.equal(compiled(torch.mm, bf16)(torch.ones(3, 4), w), torch.full((3, 2), 4.0))


def test_a_gradient_that_the_core_cannot_compute_runs_in_pytorch(bf16, rng):
    x = torch.tensor(rng.integers(-9, 9, (1, 2, 4, 4)), dtype=torch.float64, requires_grad=True)
    layer = torch.nn.Conv2d(2, 3, 2).double()
    inputs = [x, *layer.parameters()]
    found = torch.autograd.grad(compiled(layer, bf16)(x).sum(), inputs)
    for a, b in zip(found, torch.autograd.grad(layer(x).sum(), inputs), strict=True):
        assert torch.allclose(a, b)
    report = weft_torch.report(bf16)
    assert report.on_weft == () and len(report.reasons()) == 2


def test_products_inside_operators_of_pytorch(bf16):
    layer = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()
    x = torch.ones(1, 3, 8)
    with torch.no_grad():
        compiled(layer, bf16)(x)
        (reason,) = weft_torch.report(bf16).reasons()
        assert reason == (
            "on PyTorch: _transformer_encoder_layer_fwd: PyTorch computes the products inside it;"
            " torch.backends.mha.set_fastpath_enabled(False) divides it"
        )
        torch.backends.mha.set_fastpath_enabled(False)
        try:
            torch._dynamo.reset()
            compiled(layer, bf16)(x)
        finally:
            torch.backends.mha.set_fastpath_enabled(True)
    assert weft_torch.report(bf16).macs > 0
    compiled(torch.nn.Bilinear(2, 3, 4), bf16)(torch.ones(1, 2), torch.ones(1, 3))
    assert any("_trilinear" in line for line in weft_torch.report(bf16).reasons())
    few, many = torch.ones(5, 2), torch.ones(30, 2)
    for kind, x in (("_cdist_forward", few), ("_euclidean_dist", many)):
        compiled(lambda x: torch.cdist(x, x), bf16)(x)
        line = f"on PyTorch: {kind}: PyTorch computes the products inside it"
        assert line in weft_torch.report(bf16).reasons()


class Network(torch.nn.Module):
    """Two layers in a list."""

    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList([torch.nn.Linear(4, 3), torch.nn.Linear(3, 2)])

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


class Recurrent(torch.nn.Module):
    """A layer that `torch.compile` leaves to Python, and one that comes after it."""

    def __init__(self):
        super().__init__()
        self.lstm, self.dense = torch.nn.LSTM(2, 2), torch.nn.Linear(2, 2)

    def forward(self, x):
        return self.dense(self.lstm(x)[0])


def test_the_report_names_modules_and_lines(bf16):
    f, x = compiled(Network(), bf16), torch.ones(2, 4)
    f(x).sum().backward()
    rows = weft_torch.report(bf16).on_weft
    names = [row.operator.name for row in rows]
    assert names[0].startswith("layers.0, ") and ":" in names[0] and names[0].endswith(" forward")
    assert any(name.startswith("backward of layers.1, ") for name in names)
    board = NetworkTarget("board", Config(dtype="bf16"), 50.0, 1_000_000)
    text = str(weft_torch.report(bf16, board))
    assert "board: " in text.splitlines()[0] and "core ms" in text and "wire ms" in text
    assert "on Weft" in text.splitlines()[0] and "on PyTorch" in text.splitlines()[0]
    weft_torch.record(bf16).clear()
    assert weft_torch.report(bf16).cycles == 0
    for _ in range(2):
        f(x).sum().backward()
    report = weft_torch.report(bf16)
    assert all(row.calls == 2 * row.uses for row in report.on_weft)
    assert report.macs == sum(row.calls * row.operator.macs for row in report.on_weft) > 0


def test_graph_breaks_are_in_the_report(bf16):
    def f(x):
        y = x @ x
        torch._dynamo.graph_break()
        return y @ x

    compiled(f, bf16)(torch.eye(2))
    reasons = weft_torch.report(bf16).reasons()
    assert len(reasons) == 1
    assert reasons[0].startswith(
        "on PyTorch: graph break: code is left to Python, and its products are not seen: "
    )
    torch._dynamo.utils.counters.clear()
    compiled(Recurrent(), bf16)(torch.ones(1, 1, 2))  # a break without a graph
    assert any("RNN" in reason for reason in weft_torch.report(bf16).reasons())


def test_an_error_names_the_operator(int8):
    f = compiled(Network(), int8, "int8")
    with pytest.raises(OffloadError, match=r"addmm at layers.0, .* failed on Weft: operands must"):
        f(torch.full((1, 4), torch.nan))
    assert f(torch.ones(1, 4)).isfinite().all()  # the next call works


def test_models_share_the_record_of_an_accelerator(bf16, rng):
    a = integers(rng, 2, 2)
    compiled(torch.mm, bf16)(a, a)
    compiled(lambda a: a @ a @ a, bf16)(a)
    assert weft_torch.report(bf16).macs == 3 * 8


def test_records_end_with_their_accelerators(bf16, rng):
    other = Accelerator(GoldenTransport(Config(dtype="bf16")))
    compiled(torch.mm, other)(torch.ones(1, 1), torch.ones(1, 1))
    seen = weakref.ref(other)
    del other
    torch._dynamo.reset()
    gc.collect()
    assert seen() is None


def test_threads(bf16, rng):
    x, w = integers(rng, 8, 3, 4), integers(rng, 4, 4)

    def loss(x, w):
        return (F.relu(x @ w) @ w).sum()

    def gradient(f, x):
        x = x.clone().requires_grad_()
        return torch.autograd.grad(f(x, w), x)[0]

    f = compiled(loss, bf16)
    wanted = [gradient(loss, part) for part in x]
    gradient(f, x[0])
    start = threading.Barrier(4)

    def work(first):
        start.wait()
        return [gradient(f, x[n]) for n in range(first, 8, 4) for _ in range(5)]

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(work, range(4)))
    for first, parts in enumerate(found):
        for n, y in enumerate(parts):
            assert torch.equal(y, wanted[first + 4 * (n // 5)])


def test_threads_with_weights_that_stay(int8, rng):
    """Two models on one core, and one model on two cores."""
    other = Accelerator(GoldenTransport(int8.config))
    x = torch.tensor(rng.integers(-128, 128, (32, 48), "int8"))
    weights = [torch.tensor(rng.integers(-128, 128, (48, 16), "int8")) for _ in range(2)]

    class Exact(torch.nn.Module):
        def __init__(self, w):
            super().__init__()
            self.register_buffer("w", w)

        def forward(self, x):
            return torch._int_mm(x, self.w)

    wanted = [torch.tensor(matmul(x.numpy(), w.numpy())) for w in weights]
    models = [
        (compiled(Exact(weights[number]), core, "int8"), wanted[number])
        for number, core in ((0, int8), (1, int8), (0, other))
    ]
    with torch.no_grad():
        assert all(torch.equal(f(x), want) for f, want in models)
    start = threading.Barrier(4)

    def work(thread):
        start.wait()
        with torch.no_grad():
            return all(
                torch.equal(f(x), want)
                for turn in range(12) for f, want in (models[(thread + turn) % 3],)
            )

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, range(4)))
