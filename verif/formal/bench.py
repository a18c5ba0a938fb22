"""The bench of a proof: a design with free inputs, and rules that watch its pins."""

from dataclasses import dataclass

from amaranth.hdl import Assume, Const, Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from verif.formal.engine import PROVE, REACH, Verdict, decide

__all__ = ["FormalBench", "Report", "prove"]


class FormalBench(wiring.Component):
    """A design, and rules for some of its pins.

    The name of a pin consists of the members that lead to it, joined by ``_``; a field of a struct
    is named in the same way. Rules work in domain ``sync``, which the design may create from its
    pins. A reset may come in any cycle.

    Parameters
    ----------
    design : Component
    rules : dict
        `Rules` by the prefix of their pins in the design.

    Attributes
    ----------
    ``<pin>`` : In
        The inputs of the design.
    ``<prefix><name>`` : In
        The FREE inputs of the rules.
    never : In, 1 bit
        Always 0. It keeps constant outputs from being constants for Yosys, which removes those.
    ``<prefix>violated``, ``<prefix>covered`` : Out
        The outputs of the rules.
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
        outputs = {
            f"{prefix}{kind}": Out(getattr(one, kind).shape())
            for prefix, one in rules.items() for kind in ("violated", "covered")
        }
        super().__init__(free | outputs | {"never": In(1)})

    @property
    def names(self) -> dict[tuple[str, str], str]:
        """The output bit, ``port[bit]``, of each rule and cover, by kind and prefixed name."""
        return {
            (kind, prefix + name): f"{prefix}{kind}[{bit}]"
            for prefix, one in self.rules.items()
            for kind, texts in (("violated", one.RULES), ("covered", one.COVERS))
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
                self._drive(f"{prefix}violated", one.violated),
                self._drive(f"{prefix}covered", one.covered),
            ]
        return m

    def _drive(self, name, bits):
        value = bits.as_value()
        return getattr(self, name).as_value().eq(value ^ self.never.replicate(len(value)))

    def _pin(self, name):
        """The value of a pin, or of a field of a pin."""
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
    """The verdicts on the rules and covers of a bench.

    Attributes
    ----------
    rules, covers : dict of Verdict
        By name, with its prefix.
    """

    rules: dict[str, Verdict]
    covers: dict[str, Verdict]

    @property
    def failures(self) -> list[str]:
        """The rules that were not proven, and the covers that were not reached."""
        return [
            f"{name}: {verdict.answer}"
            for verdicts, expected in ((self.rules, "never"), (self.covers, "reached"))
            for name, verdict in verdicts.items() if verdict.answer != expected
        ]


def prove(*benches, only=None, search=PROVE, cuts="") -> list[Report]:
    """Decide the rules and covers of each `FormalBench`.

    Parameters
    ----------
    benches : FormalBench
    only : list of set of str, optional
        For each bench the names of the rules and covers to decide; all by default.
    search
        How to look for a violation of a rule. REACH never proves a rule.
    cuts : str
        As in `verif.formal.engine.decide`.
    """
    only = only or [{name for _, name in bench.names} for bench in benches]
    names = [
        {key: bit for key, bit in bench.names.items() if key[1] in selected}
        for bench, selected in zip(benches, only, strict=True)
    ]
    searches = [
        {bit: {"violated": search, "covered": REACH}[kind] for (kind, _), bit in one.items()}
        for one in names
    ]
    verdicts = decide(benches, searches, cuts=cuts)
    return [
        Report(*(
            {name: found[bit] for (one, name), bit in selected.items() if one == kind}
            for kind in ("violated", "covered")
        ))
        for selected, found in zip(names, verdicts, strict=True)
    ]
