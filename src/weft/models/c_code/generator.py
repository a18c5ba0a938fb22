"""What the C files of networks for all kinds of cores share: operators of the host, and checks."""

import math

from weft.models.c_code.operators import OPERATORS, OperatorCall
from weft.models.c_code.sources import filled_sources, public_name
from weft.models.c_code.tensors import TensorAddresses
from weft.models.errors import ModelError
from weft.models.work import HostWork, RecurrentWork

__all__ = ["Generator", "checked_call", "no_code", "require_no_state", "require_one"]


def require_one(program) -> None:
    """Raise ModelError if a network does not have one input and one output."""
    for what, found in (("input", program.inputs), ("output", program.outputs)):
        if len(found) != 1:
            raise ModelError(
                f"{program.name}: C code needs one {what}, the network has {len(found)}"
            )


def no_code(program, step, reason: str) -> ModelError:
    """Return the error of a step without C code."""
    operator = " and ".join(step.operators)
    return ModelError(
        f"{program.name}: operator {step.position[0]} ({operator} {step.name}): no C code: {reason}"
    )


def checked_call(call: str) -> list[str]:
    """Return the lines of a call whose error ends the function."""
    return [f"    error = {call};", "    if (error != WEFT_OK)", "        return error;"]


def require_no_state(program, steps) -> None:
    """Raise ModelError for variables, a recurrent layer, or another operator with a state."""
    if program.states:
        raise ModelError(
            f"{program.name}: variable {program.states[0].name}: no C code: C code keeps no"
            f" variables; a program file runs them from Python: weft run {program.name}.weft"
            " --on PORT"
        )
    for step in steps:
        is_recurrent = isinstance(step.work, RecurrentWork)
        is_filter = isinstance(step.work, HostWork) and step.work.kernel.endswith(".svdf")
        if is_recurrent or is_filter:
            raise no_code(
                program, step, "C code has no operators with a state, such as recurrent layers; a"
                f" program file runs them from Python: weft run {program.name}.weft --on PORT"
            )


class Generator:
    """Collects the definitions and the calls of a program.

    Parameters
    ----------
    program : Program or NetworkCoreProgram
    accesses
        As for `TensorAddresses`.
    headers : str
        Files that are always included.
    """

    def __init__(self, program, accesses, *headers: str):
        self._program = program
        self._tensors = TensorAddresses(program, accesses)
        self._texts: list[str] = []
        self._headers = {*headers}
        self._constant_bytes = 0

    def _call(self, number: int, step) -> OperatorCall:
        """Return the call of an operator of the host; ``number`` makes its names unique."""
        tensors = self._program.tensors
        shapes = tensors[step.inputs[0]].shape, tensors[step.outputs[0]].shape
        return OPERATORS[step.work.kernel](number, step.work.attributes, *shapes)

    def _text(self, step, call: OperatorCall, inputs) -> str:
        """Add the definitions of a call; return it with the addresses of its tensors."""
        self._headers.add(call.header)
        self._constant_bytes += call.constant_bytes
        if call.text:
            self._texts.append(call.text)
        names = [self._tensors.of(n) for n in inputs]
        return call.call.format(a=names[0], b=names[-1], y=self._tensors.of(step.outputs[0]))

    def _filled(self, header: str, source: str, prefix: str, **values) -> dict[str, bytes]:
        """Return all files; ``values`` are the ones that only this kind of core has."""
        program, tensors = self._program, self._tensors
        name = public_name(program.name, prefix)
        sizes = {
            what: math.prod(program.tensors[found[0]].shape)
            for what, found in (("input", program.inputs), ("output", program.outputs))
        }
        return filled_sources(header, source, self._headers, {
            "name": name, "NAME": name.upper(), "operators": len(program.operators), **sizes,
            "constant": self._constant_bytes + tensors.constant_bytes,
            "arena": max(tensors.arena, 1),
            "definitions": "\n\n".join([*tensors.texts, *self._texts]), **values,
        }, prefix)
