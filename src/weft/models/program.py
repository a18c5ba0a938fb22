"""A compiled network: its steps, where each runs and why, and what each is predicted to cost."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from weft.host.transport import Transport
from weft.models.dead_channels import LeftOut
from weft.models.exactness import Exactness
from weft.models.ir import State, Tensor
from weft.models.target import NetworkTarget
from weft.models.work import CoreWork, HostProduct, HostWork, ListProduct, RecurrentWork

if TYPE_CHECKING:
    from weft.models.session import Session

__all__ = [
    "NO_MAP_PRODUCT", "CompiledNetwork", "Estimate", "MatrixProduct", "Placement", "Program",
    "Step", "joined_operators",
]

# Why the host computes a product of maps that a network core with `multiply_maps` would compute.
NO_MAP_PRODUCT = "the core does not multiply maps"


def joined_operators(operators: Sequence[str]) -> str:
    """Return the operators of a step in one word: ``CONV_2D+ADD``; of many the ends and the number.
    """
    if len(operators) <= 3:
        return "+".join(operators)
    return f"{operators[0]}...{operators[-1]} ({len(operators)})"


@dataclass(frozen=True)
class Placement:
    """Where a step runs, and why.

    Attributes
    ----------
    on_weft : bool
        Whether the core computes its products.
    reason : str
        Why the host computes the step, or a part of it: ``no product``, ``weights have zero
        points: the host corrects raw sums``. Empty if the core computes all of it.
    field : str
        Field of the Config, with a value, that would change this: ``b_zero_point=column``. Empty
        if no field does.
    extra_bytes : int
        Bytes on the result stream that this field would save, per inference.
    """

    on_weft: bool
    reason: str = ""
    field: str = ""
    extra_bytes: int = 0


@dataclass(frozen=True)
class MatrixProduct:
    """``count`` products A[m, k] x B[k, n] of equal shapes, on the core.

    With block-diagonal or Toeplitz weights, k and n count the zeros, too.
    """

    m: int
    k: int
    n: int
    count: int = 1


@dataclass(frozen=True)
class Estimate:
    """The predicted cost of a step on the core, for one inference.

    Weights that stay in the core (`Step.resident_bytes`) are loaded once, before the first
    inference; this is not counted. Loads of the weights of the next step, if they overlap with
    this step, count here.

    Attributes
    ----------
    cycles : int
        Cycles in which the core is busy, if the streams never wait for the host.
    active : int
        Cycles in which the array accepts operands.
    starved : int
        Cycles in which the array waits for operands.
    stalled : int
        Cycles in which the array waits for space for results.
    jobs : int
        Jobs on the command stream.
    bytes_in : int
        Bytes on the command stream: headers, operands, parameters and padding.
    bytes_out : int
        Bytes on the result stream, with padding.
    """

    cycles: int
    active: int
    starved: int
    stalled: int
    jobs: int
    bytes_in: int
    bytes_out: int

    def __add__(self, other: "Estimate") -> "Estimate":
        return Estimate(*(getattr(self, f) + getattr(other, f) for f in self.__match_args__))

    def __mul__(self, times: int) -> "Estimate":
        return Estimate(*(getattr(self, f) * times for f in self.__match_args__))


@dataclass(frozen=True, eq=False, kw_only=True)
class Step:
    """One node of the network, placed; or a product with the table operator fused into it.

    Attributes
    ----------
    operators : tuple of str
        Operators of the file that the step stands for: ``("CONV_2D",)``, ``("CONV_2D",
        "LOGISTIC")``.
    name : str
        Name of the node, for messages.
    position : tuple of int
        Places of these operators in the file, from 0.
    inputs, outputs : tuple of int
        Tensors; -1 is an absent input.
    placement : Placement
    macs : int
        Multiply-accumulate operations of the operator in one inference; 0 if it has no product.
        Zeros of block-diagonal weights, padding and ``left_out`` do not count.
    method : str
        How the operator becomes products: ``matrix``, ``pointwise``, ``windows``,
        ``block-diagonal``, ``toeplitz``; empty on the host.
    products : tuple of MatrixProduct
        Products on the core; empty on the host.
    estimate : Estimate or None
        Predicted cost; None on the host.
    weights : str
        How the weights reach the core: ``resident`` (loaded once), ``early`` (loaded while the
        previous step computes), ``streamed`` (loaded with the step), ``activation`` (the second
        operand is computed); empty on the host. A recurrent layer is ``streamed`` if some of its
        weights are sent at each step in time.
    resident_bytes : int
        Bytes of the B buffer that the weights occupy between inferences.
    work : CoreWork, HostProduct, ListProduct, HostWork or RecurrentWork
        What the session executes.
    left_out : int
        Multiply-accumulate operations of the operator that are not computed: `LeftOut`.
    """

    operators: tuple[str, ...]
    name: str
    position: tuple[int, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    placement: Placement
    macs: int = 0
    method: str = ""
    products: tuple[MatrixProduct, ...] = ()
    estimate: Estimate | None = None
    weights: str = ""
    resident_bytes: int = 0
    work: CoreWork | HostProduct | ListProduct | HostWork | RecurrentWork
    left_out: int = 0

    @property
    def operands(self) -> tuple[int, ...]:
        """The tensors whose values `work` gets; -1 is an absent input."""
        if isinstance(self.work, HostWork | RecurrentWork):
            return self.inputs
        return tuple(number for number in (self.work.x, self.work.b) if number is not None)


@dataclass(frozen=True, eq=False, kw_only=True)
class CompiledNetwork:
    """A network compiled for a target: what programs of all cores have.

    Attributes
    ----------
    name : str
        Name of the network's file without its suffix.
    source : str
        ``tflite`` or ``onnx``: the runtime whose numerics the network has.
    mode : str
        Rounding mode of its quantized results: ``tflite``, ``single`` or ``onnx``.
    target : NetworkTarget
    tensors : tuple of Tensor
        Tensors of the network, known by their places. Constants that no step reads have no data.
    inputs, outputs : tuple of int
        Tensors.
    operators : tuple of str
        The operators of the file, in its order; `Step.position` counts in it.
    exactness : Exactness
        How exactly the outputs equal those of the runtime.
    notes : tuple of str
        Facts about import and compilation that a user should know.
    left_out : LeftOut or None
        Channels that it does not compute; None if it computes all, to return all activations.
    states : tuple of State
        Variables that keep their values from inference to inference. So inferences follow each
        other.
    """

    name: str
    source: str
    mode: str
    target: NetworkTarget
    tensors: tuple[Tensor, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    operators: tuple[str, ...]
    exactness: Exactness
    notes: tuple[str, ...] = ()
    left_out: LeftOut | None = None
    states: tuple[State, ...] = ()

    @property
    def kind(self) -> str:
        """The kind of the core."""
        return self.target.kind

    @property
    def host(self) -> tuple[Step, ...]:
        """The steps that the host executes; the core may compute their products, one by one."""
        raise NotImplementedError

    @property
    def renamed(self) -> tuple:
        """Operators without work, of a network core: their outputs are maps that exist."""
        return ()

    @property
    def host_states(self) -> tuple[State, ...]:
        """The variables whose values the session keeps."""
        return self.states

    @property
    def results(self) -> tuple[int, ...]:
        """The tensors that are read at the end: outputs, and values of states."""
        return (*self.outputs, *(state.after for state in self.host_states))

    def check(self) -> None:
        """Raise ModelError if a part of the program does not fit the others."""
        raise NotImplementedError

    def save(self, path) -> None:
        """Write the program to a file; `weft.load` reads it."""
        from weft.models.program_file import write_program

        write_program(self, path)


@dataclass(frozen=True, eq=False, kw_only=True)
class Program(CompiledNetwork):
    """A network compiled for a product core.

    Attributes
    ----------
    steps : tuple of Step
        In the order of execution.
    others
        As of `CompiledNetwork`.
    """

    steps: tuple[Step, ...]

    @property
    def estimate(self) -> Estimate:
        """The predicted cost of one inference on the core: the sum of all steps."""
        zero = Estimate(0, 0, 0, 0, 0, 0, 0)
        return sum((step.estimate for step in self.steps if step.estimate), zero)

    @property
    def host(self) -> tuple[Step, ...]:
        """All steps."""
        return self.steps

    @property
    def keeps_maps(self) -> bool:
        """Whether a session can return the outputs of operators. The host has them all."""
        return True

    def check(self) -> None:
        """Raise ModelError if a part of the program does not fit the others."""
        from weft.models.program_check import check_product_core_program

        check_product_core_program(self)

    def open(self, transport: Transport | str, *, timeout: float = 60.0) -> "Session":
        """Return a `weft.models.session.Session` on a core; its arguments are described there."""
        from weft.models.session import Session

        return Session(self, transport, timeout=timeout)

