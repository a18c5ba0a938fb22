"""The network that ``weft sim`` runs for each data type, and the table of its layers."""

from dataclasses import dataclass

import numpy as np

from weft.dtypes import DTYPES

__all__ = ["NETWORKS", "GoldenLayer", "LayerRow", "layer_table"]


@dataclass(frozen=True, kw_only=True)
class LayerRow:
    """The row of one layer in `layer_table`.

    Attributes
    ----------
    name : str
    m, k, n : int
        Shape of the product, [m, k] x [k, n].
    cycles : int
        Measured cycles.
    predicted : int
        Cycles by the cycle model.
    utilization : float
        Utilization in steady state, 0..1.
    match : bool
        Whether all results equal the golden model's.
    """

    name: str
    m: int
    k: int
    n: int
    cycles: int
    predicted: int
    utilization: float
    match: bool

    def __post_init__(self):
        for name in ("m", "k", "n", "cycles", "predicted"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be 1 or more, not {getattr(self, name)}")
        if not 0 <= self.utilization <= 1:
            raise ValueError(f"utilization must be in 0..1, not {self.utilization}")

    @property
    def problems(self) -> list[str]:
        """What differs from the golden model and from the cycle model, a line each."""
        found = []
        if not self.match:
            found.append(f"results of {self.name} must equal the golden model's")
        if self.cycles != self.predicted:
            found.append(
                f"cycles of {self.name} must equal the prediction of {self.predicted:,}, not"
                f" {self.cycles:,}"
            )
        return found


def layer_table(
    rows, *, images, accuracy, float_accuracy, numbers="INT8", console=None
) -> list[str]:
    """Print ``rows``, their total, and a line on the accuracy.

    Parameters
    ----------
    rows : sequence of LayerRow
    images : int
        Number of test images.
    accuracy, float_accuracy : float
        Share of ``images`` that the hardware, and the float model, classified correctly.
    numbers : str
        Data type of the hardware.
    console : rich Console, optional

    Returns
    -------
    list of str
        The problems of all layers; empty if each equals golden and takes the predicted cycles.

    Raises
    ------
    ValueError
        If there are no rows, or an accuracy is outside 0..1.
    """
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    rows = list(rows)
    if not rows:
        raise ValueError("rows must not be empty")
    for name, value in (("accuracy", accuracy), ("float_accuracy", float_accuracy)):
        if not 0 <= value <= 1:
            raise ValueError(f"{name} must be in 0..1, not {value}")
    table = Table(box=SIMPLE_HEAD, show_footer=len(rows) > 1, footer_style="bold", pad_edge=False)
    cycles, predicted = sum(row.cycles for row in rows), sum(row.predicted for row in rows)
    matches = all(row.match for row in rows)
    for name, align, footer in (
        ("layer", "left", "all"),
        ("M x K x N", "right", ""),
        ("cycles", "right", f"{cycles:,}"),
        ("predicted", "right", _checked(f"{predicted:,}", cycles == predicted)),
        ("steady-state\nutilization", "right", ""),
        ("golden", "center", _checked("yes" if matches else "NO", matches)),
    ):
        table.add_column(name, footer, justify=align, no_wrap=True)
    for row in rows:
        table.add_row(
            Text(row.name),
            f"{row.m} x {row.k} x {row.n}",
            f"{row.cycles:,}",
            _checked(f"{row.predicted:,}", row.predicted == row.cycles),
            f"{row.utilization:.1%}",
            _checked("yes" if row.match else "NO", row.match),
        )
    console = console or Console()
    console.print(table)
    console.print(
        f"Accuracy on {images} images: [bold]{accuracy:.2%}[/] {numbers} on the hardware, "
        f"{float_accuracy:.2%} float32.",
        highlight=False,
    )
    return [problem for row in rows for problem in row.problems]


def _checked(text, good):
    from rich.text import Text

    return Text(text, style="green" if good else "bold red")


@dataclass(frozen=True)
class GoldenLayer:
    """A fully connected layer for given inputs, by the golden model.

    Attributes
    ----------
    a, b : array [M, K], [K, N]
        Operands of the product.
    arguments : dict
        Further arguments of `weft.Accelerator.matmul` for what the core computes of the layer.
    product : array [M, N]
        The result of the core.
    y : array [M, N]
        The result of the layer.
    """

    a: np.ndarray
    b: np.ndarray
    arguments: dict
    product: np.ndarray
    y: np.ndarray


class _Int8Network:
    """The quantized digits network."""

    kind = "int8"

    @staticmethod
    def layer(gemm, x, program) -> GoldenLayer:
        from weft.golden import add_bias, matmul, requantize
        from weft.quantize import tflite_scale

        given, w = gemm.requantization, gemm.weights[0]
        multiplier, shift = tflite_scale(given.x_scale, given.w_scale, given.y_scale)
        scaling = dict(
            multiplier=multiplier, shift=shift, zero_point=given.zero, low=given.low,
            high=given.high,
        )
        bias = gemm.bias.astype(np.int32)
        arguments = {"a_zero_point": gemm.x_zero}
        sums = matmul(x, w, **arguments)
        y = requantize(add_bias(sums, bias), mode=program.mode, **scaling)
        if program.target.array.requantize != program.mode:
            return GoldenLayer(x, w, arguments, sums, y)
        return GoldenLayer(x, w, {**arguments, "bias": bias, **scaling}, y, y)


class _Bf16Network:
    """The digits network in float32, with operands rounded to bfloat16."""

    kind = "float32"

    @staticmethod
    def layer(gemm, x, program) -> GoldenLayer:
        from weft.golden import clamp, matmul_bf16, to_bfloat16

        config = program.target.array
        x, w = to_bfloat16(x), to_bfloat16(gemm.weights[0])
        low = None if gemm.activation == "none" else np.float32(0)
        start = gemm.bias if config.c_words else None
        sums = matmul_bf16(x, w, start=start, flush_subnormals=config.flush_subnormals)
        y = clamp(sums if config.c_words else sums + gemm.bias, low=low)
        if config.c_words and config.activation == "clamp":
            return GoldenLayer(x, w, {"bias": gemm.bias, "low": low}, y, y)
        return GoldenLayer(x, w, {"bias": start}, sums, y)


# By the name of the data type.
NETWORKS = DTYPES.layer("network", int8=_Int8Network, bf16=_Bf16Network)
