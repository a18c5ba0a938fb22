"""The bench of a proof: a design whose inputs may be anything, and rules that watch its pins."""

from dataclasses import dataclass

from amaranth.hdl import Assume, Const, Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from weft.sim.formal.engine import PROVE, REACH, Verdict, decide

__all__ = ["FormalBench", "Report", "prove"]


class FormalBench(wiring.Component):
    """A design, and rules for some of its pins.

    A pin is named by the members that lead to it, with ``_`` between; so is a field of one. Pins
    that are inputs of the design are inputs here, of the same names. Rules are of the domain
    ``sync``: the design's, where it makes one of its pins. Resets may come in any cycle.

    Parameters
    ----------
    design : Component
    rules : dict
        `Rules` by what is before the names of their pins in the design's.

    Attributes
    ----------
    ``<pin>`` : In
    ``<prefix><name>`` : In
        What rules have FREE.
    never : In
        Is low. It keeps outputs that never change from being constants, which Yosys leaves out.
    ``<prefix>broken``, ``<prefix>seen`` : Out
        Of the rules.
    """

    def __init__(self, design, rules):
        self.design = design
        self.rules = rules
        self.pins = {
            "_".join(map(str, path)): (member, value)
            for path, member, value in design.signature.flatten(design)
            if not isinstance(value, Const)  # `ready` of a stream that is always ready
        }
        free = {
            name: In(member.shape) for name, (member, _) in self.pins.items()
            if member.flow == In
        }
        free |= {
            f"{prefix}{name}": In(width)
            for prefix, one in rules.items() for name, width in one.FREE.items()
        }
        told = {
            f"{prefix}{kind}": Out(getattr(one, kind).shape())
            for prefix, one in rules.items() for kind in ("broken", "seen")
        }
        super().__init__(free | told | {"never": In(1)})

    @property
    def names(self) -> dict[tuple[str, str], str]:
        """The bit of the outputs, ``port[bit]``, of each rule and cover, by kind and name.

        A name is that in RULES or COVERS with the prefix before it.
        """
        return {
            (kind, prefix + name): f"{prefix}{kind}[{bit}]"
            for prefix, one in self.rules.items()
            for kind, texts in (("broken", one.RULES), ("seen", one.COVERS))
            for bit, name in enumerate(texts)
        }

    def elaborate(self, platform):
        m = Module()
        m.submodules.design = self.design
        m.d.comb += Assume(~self.never)
        for name, (member, value) in self.pins.items():
            if member.flow == In:
                m.d.comb += value.eq(getattr(self, name))
        for prefix, one in self.rules.items():
            m.submodules[f"{prefix}rules"] = one
            m.d.comb += [
                *(getattr(one, pin).eq(self._pin(f"{prefix}{pin}")) for pin in one.PINS),
                *(getattr(one, name).eq(getattr(self, f"{prefix}{name}")) for name in one.FREE),
                *(self._told(f"{prefix}{kind}", getattr(one, kind)) for kind in ("broken", "seen")),
            ]
        return m

    def _told(self, name, bits):
        value = bits.as_value()
        return getattr(self, name).as_value().eq(value ^ self.never.replicate(len(value)))

    def _pin(self, name):
        """The pin of a name, or the field of one."""
        if name in self.pins:
            return self.pins[name][1]
        whole = max((pin for pin in self.pins if name.startswith(f"{pin}_")), key=len)
        value, rest = self.pins[whole][1], name.removeprefix(f"{whole}_")
        while rest not in value.shape().members:
            part = next(one for one in value.shape().members if rest.startswith(f"{one}_"))
            value, rest = value[part], rest.removeprefix(f"{part}_")
        return value[rest]


@dataclass(frozen=True)
class Report:
    """What was found of a bench.

    Attributes
    ----------
    rules, covers : dict of Verdict
        By name, with the prefix before it.
    """

    rules: dict[str, Verdict]
    covers: dict[str, Verdict]

    @property
    def wrong(self) -> list[str]:
        """What is not as it must be: rules not proven, covers not reached."""
        return [
            f"{name}: {verdict.answer}"
            for found, right in ((self.rules, "never"), (self.covers, "reached"))
            for name, verdict in found.items() if verdict.answer != right
        ]


def prove(*benches, only=None, search=PROVE, cuts="") -> list[Report]:
    """Decide all rules and covers of each `FormalBench`, or of those of a list ``only``, by name.

    ``search`` is the way to look for rules that are broken: with REACH none is ever proven. The
    rest is as of `weft.sim.formal.engine.decide`.
    """
    only = only or [{name for _, name in bench.names} for bench in benches]
    names = [
        {key: bit for key, bit in bench.names.items() if key[1] in some}
        for bench, some in zip(benches, only, strict=True)
    ]
    asked = [
        {bit: {"broken": search, "seen": REACH}[kind] for (kind, _), bit in one.items()}
        for one in names
    ]
    found = decide(benches, asked, cuts=cuts)
    return [
        Report(*(
            {name: verdicts[bit] for (one, name), bit in some.items() if one == kind}
            for kind in ("broken", "seen")
        ))
        for some, verdicts in zip(names, found, strict=True)
    ]
