"""A digest of a design that does not depend on names, on order, or on the hierarchy of modules.

Two designs with equal digests have the same cells, and the same connections between them. So a
measured figure of the one is a figure of the other, but for the noise of place and route.

The digest is a hash of the flattened design. Each node, such as a cell, has a label: at first its
type with its parameters, and in each round a hash of that and of the labels of the nodes that drive
its inputs. The rounds end when they tell no more nodes apart. This is the colour refinement of
Weisfeiler and Leman, with drivers as neighbours.
"""

import hashlib
import itertools
import re
from collections import defaultdict
from dataclasses import dataclass, field

__all__ = ["design_digest"]

# Attributes that describe the source, and change no cell.
_DESCRIPTIONS = re.compile(r"\\(src|hdlname|generator|top|enum_\w+)$")
# Parameters of ports of memories with the names and numbers of other cells: these are connections.
_LINKS = r"\MEMID", r"\PORTID", r"\TRANSPARENCY_MASK"
_CHUNK = re.compile(r"(\d+)'([01xz-]*)|(\S+?)(?: \[(\d+)(?::(\d+))?\])?(?=\s|$)")
_READ, _WRITE, _INITIAL = "$memrd_v2", "$memwr_v2", "$meminit_v2"
_REGISTERS = "$dff", "$adff"
_OUTPUTS = r"\Y", r"\Q", r"\DATA"  # of cells of Yosys
_CONSTANTS = "01xz"  # the first bits of a netlist


def design_digest(rtlil: str) -> str:
    """32 hexadecimal digits of a design in Amaranth's RTLIL.

    Names of the ports of the top module count, since constraints name them. Names of signals,
    cells, memories and modules do not. Nor does the order of anything, nor in which module a cell
    is. Equal combinational cells with equal inputs count once, as synthesis merges them; registers,
    memories and primitives count each. Cells that drive nothing do not count.

    Raises ValueError for a text that is no design.
    """
    modules = _read(rtlil)
    top = [module for module in modules.values() if r"\top" in module.attributes]
    if len(top) != 1:
        raise ValueError(f"RTLIL must have one top module, not {len(top)}")
    return _refined(_Netlist(modules, *top))


@dataclass
class _Module:
    """A module as it is written: sigspecs are texts."""

    attributes: dict[str, str]
    wires: dict[str, tuple[int, str, dict]] = field(default_factory=dict)  # width, kind, attributes
    memories: dict[str, tuple] = field(default_factory=dict)
    cells: list[tuple] = field(default_factory=list)  # type, attributes, parameters, ports
    connections: list[tuple[str, str]] = field(default_factory=list)
    processes: list[list] = field(default_factory=list)


def _read(text):
    """The modules of a text by their names."""
    modules, attributes = {}, {}
    lines = filter(None, map(str.strip, text.splitlines()))
    lines = (line for line in lines if not line.startswith("#"))
    for line in lines:
        word, _, rest = line.partition(" ")
        match word:
            case "attribute":
                name, _, value = rest.partition(" ")
                attributes[name] = value
                continue
            case "module":
                modules[rest] = module = _Module(attributes)
            case "wire":
                _, width, *kind, name = rest.split()
                module.wires[name] = int(width), kind[0] if kind else "", attributes
            case "memory":
                _, width, _, size, name = rest.split()
                module.memories[name] = width, size, _significant(attributes)
            case "cell":
                module.cells.append((rest.split()[0], attributes, *_read_cell(lines)))
            case "process":
                module.processes.append(_read_block(lines))
            case "connect":
                module.connections.append(_two(rest))
            case "end":
                pass
            case _:
                raise ValueError(f"a line of RTLIL must be one that Amaranth writes, not {line!r}")
        attributes = {}
    return modules


def _read_cell(lines):
    parameters, ports = {}, {}
    for line in lines:
        word, _, rest = line.partition(" ")
        if word == "end":
            return parameters, ports
        if word == "parameter":
            kind, _, rest = rest.partition("\\")
            name, _, value = rest.partition(" ")
            parameters[f"\\{name}"] = kind + value
        else:
            name, _, value = rest.partition(" ")
            ports[name] = value


def _read_block(lines):
    """The assignments and switches up to the end: (target, value), or (value, cases)."""
    found = []
    for line in lines:
        word, _, rest = line.partition(" ")
        if word == "end":
            break
        if word == "assign":
            found.append(_two(rest))
        elif word == "switch":
            found.append((rest, _read_cases(lines)))
        else:
            raise ValueError(f"a line of a process must be assign or switch, not {line!r}")
    return found


def _read_cases(lines):
    """The cases of a switch: patterns, each with the lowest bit first, and the block."""
    cases = []
    for line in lines:
        word, _, rest = line.partition(" ")
        if word == "case":
            patterns = [pattern.partition("'")[2][::-1] for pattern in rest.split(", ")]
            cases.append((patterns if rest else [], []))
        elif word == "assign":
            cases[-1][1].append(_two(rest))
        elif word == "switch":
            cases[-1][1].append((rest, _read_cases(lines)))
        else:
            return cases
    return cases


def _two(text):
    """Both sigspecs of a line."""
    if text.startswith("{"):
        first, _, second = text.partition(" } ")
        return f"{first} }}", second
    first = _CHUNK.match(text)
    return first[0], text[first.end() + 1 :]


def _significant(attributes):
    return tuple(sorted(
        (name, value) for name, value in attributes.items() if not _DESCRIPTIONS.match(name)
    ))


@dataclass(slots=True)
class _Node:
    """A cell, a memory, a port of the top module, or a choice of a process.

    Attributes
    ----------
    about : tuple
        All that matters besides its connections; its type is the first.
    inputs, outputs : list of (str, list of int)
        Bits by the name of the port.
    unordered : list of int
        Indices of nodes that it depends on, in any order.
    counts : bool
        Equal nodes count each.
    holds : bool
        Its output does not follow its inputs in the same cycle.
    needed : bool
        It matters even if it drives nothing.
    """

    about: tuple
    inputs: list[tuple[str, list[int]]]
    outputs: list[tuple[str, list[int]]]
    unordered: list[int] = field(default_factory=list)
    counts: bool = False
    holds: bool = False
    needed: bool = False


class _Netlist:
    """A flattened design: bits, which are numbers, and nodes that drive them.

    Attributes
    ----------
    nodes : list of _Node
    """

    def __init__(self, modules, top):
        self._modules = modules
        self._sources = list(range(len(_CONSTANTS)))  # of each bit: the bit that it is equal to
        self._described = []  # bits of wires and their attributes
        self.nodes = []
        wires = self._add(top)
        for name, (_, kind, _) in top.wires.items():
            if kind:
                read = [(name, wires[name])] if kind != "input" else []
                self.nodes.append(_Node(
                    ("port", name), read, [(name, wires[name])], counts=True, holds=True,
                    needed=True,
                ))
        self._drivers = self._connect()  # node, port and offset of each bit

    def _add(self, module):
        """Add the contents of a module; the bits of its wires by name."""
        wires = {}
        for name, (width, _, attributes) in module.wires.items():
            first = len(self._sources)
            wires[name] = bits = list(range(first, first + width))
            self._sources += bits
            if found := _significant(attributes):
                self._described.append((bits, found))
        for target, value in module.connections:
            self._join(_bits(target, wires), _bits(value, wires))
        for block in module.processes:
            self._add_process(block, wires)
        memories, links = self._add_memories(module), []
        for kind, attributes, parameters, ports in module.cells:
            # Amaranth writes indices behind a wire, but not behind the new wire of an output.
            outputs = [
                (name, wires[value]) for name, value in ports.items()
                if value in wires and (kind[0] != "$" or name in _OUTPUTS)
            ]
            ports = {name: _bits(value, wires) for name, value in ports.items()}
            if kind in self._modules:
                self._add_instance(self._modules[kind], ports)
                continue
            found = dict(outputs)
            inputs = sorted((name, bits) for name, bits in ports.items() if name not in found)
            about = kind, _significant(attributes), tuple(sorted(
                (name, value) for name, value in parameters.items() if name not in _LINKS
            ))
            node = _Node(about, inputs, outputs, counts=kind in _REGISTERS or kind[0] != "$",
                         holds=kind in _REGISTERS, needed=r"\keep" in attributes)
            if kind in (_READ, _WRITE, _INITIAL):
                links.append((node, parameters))
            else:
                self.nodes.append(node)
        self._add_memory_ports(memories, links)
        return wires

    def _add_instance(self, module, ports):
        inner = self._add(module)
        for name, bits in ports.items():
            if module.wires[name][1] == "output":
                self._join(bits, inner[name])
            else:
                self._join(inner[name], bits)

    def _join(self, targets, values):
        for target, value in zip(targets, values, strict=True):
            self._sources[target] = value

    def _add_memories(self, module):
        """Add the memories of a module; their indices by name."""
        memories = {}
        for name, about in module.memories.items():
            memories[name] = len(self.nodes)
            self.nodes.append(_Node(("memory", *about), [], [], counts=True, holds=True))
        return memories

    def _add_memory_ports(self, memories, links):
        """Add the ports of memories and their initial values: nodes with all their parameters.

        A memory depends on its writing ports and its initial values; a reading port depends on its
        memory, and on the writing ports whose words it passes on.
        """
        writing = {}
        for node, parameters in sorted(links, key=lambda link: link[0].about[0] == _READ):
            memory = memories[parameters[r"\MEMID"].strip('"').removeprefix("\\")]
            node.counts = True
            if node.about[0] == _READ:
                mask = parameters[r"\TRANSPARENCY_MASK"].partition("'")[2][::-1]
                passed = [number for number, bit in enumerate(mask) if bit == "1"]
                node.unordered = [memory, *(writing[memory, number] for number in passed)]
                node.holds = parameters[r"\CLK_ENABLE"] == "1"
            else:
                self.nodes[memory].unordered.append(len(self.nodes))
            if node.about[0] == _WRITE:
                writing[memory, int(parameters[r"\PORTID"])] = len(self.nodes)
            self.nodes.append(node)

    def _add_process(self, block, wires):
        """Add the choices of a process, for each part of its output that is assigned together."""
        targets = []  # the bits of each assignment

        def collect(block):
            for target, value in block:
                if isinstance(value, list):
                    for _, inner in value:
                        collect(inner)
                else:
                    targets.append(_bits(target, wires))

        collect(block)
        # The first assignment is the default of the whole output.
        place = {bit: index for index, bit in enumerate(targets[0])}
        cuts = {0, len(place)}
        for bits in targets:
            inside = {place[bit] for bit in bits}
            cuts |= {n for n in inside if n - 1 not in inside}
            cuts |= {n + 1 for n in inside if n + 1 not in inside}
        parts = list(itertools.pairwise(sorted(cuts)))
        values = self._run(block, wires, [()] * len(parts), place, parts)
        for (first, end), value in zip(parts, values, strict=True):
            self._join(targets[0][first:end], value)

    def _run(self, block, wires, values, place, parts):
        """The values of all parts behind a block, from the values before it."""
        for target, value in block:
            if isinstance(value, list):
                test, before = _bits(target, wires), values
                cases = [
                    (patterns, self._run(inner, wires, before, place, parts))
                    for patterns, inner in value
                ]
                values = [
                    self._choice(test, [(patterns, found[part]) for patterns, found in cases], old)
                    for part, old in enumerate(before)
                ]
                continue
            assigned = dict(zip(
                (place[bit] for bit in _bits(target, wires)), _bits(value, wires), strict=True,
            ))
            values = [
                tuple(assigned[bit] for bit in range(first, end)) if first in assigned else old
                for (first, end), old in zip(parts, values, strict=True)
            ]
        return values

    def _choice(self, test, cases, default):
        """The bits of the first case with a pattern that matches.

        Amaranth tests all conditions of a chain of ``If`` together. The last cases and the tested
        bits that change nothing here are left out: they are for other signals of the chain.
        """
        for number, (patterns, value) in enumerate(cases):
            if not patterns:  # it matches always
                cases, default = cases[:number], value
                break
        while cases and cases[-1][1] == default:
            cases = cases[:-1]
        if not cases:
            return default
        first = len(self._sources)
        bits = tuple(range(first, first + len(default)))
        self._sources += bits
        tested = [
            place for place in range(len(test))
            if any(pattern[place] != "-" for patterns, _ in cases for pattern in patterns)
        ]
        about = tuple(
            tuple(sorted("".join(pattern[place] for place in tested) for pattern in patterns))
            for patterns, _ in cases
        )
        inputs = [("test", [test[place] for place in tested]), ("default", default)]
        inputs += [(f"case {number}", value) for number, (_, value) in enumerate(cases)]
        self.nodes.append(_Node(("choice", about), inputs, [("value", bits)]))
        return bits

    def _source(self, bit):
        """The bit that a bit is equal to in the end."""
        path = []
        while self._sources[bit] != bit:
            path.append(bit)
            bit = self._sources[bit]
        for each in path:
            self._sources[each] = bit
        return bit

    def _connect(self):
        """Find what drives each bit."""
        for node in self.nodes:
            for ports in (node.inputs, node.outputs):
                ports[:] = [(name, [*map(self._source, bits)]) for name, bits in ports]
            node.needed |= not node.outputs and node.about[0] not in (_WRITE, _INITIAL, "memory")
        drivers = dict.fromkeys(range(len(_CONSTANTS)))
        # A port of the top module drives what no cell drives. An input is such a bit. So is a pin
        # at a primitive, and the primitive depends on the name of the port.
        order = sorted(enumerate(self.nodes), key=lambda each: each[1].about[0] == "port")
        for number, node in order:
            for name, bits in node.outputs:
                for offset, bit in enumerate(bits):
                    drivers.setdefault(bit, (number, name, offset))
        self._describe(drivers)
        return drivers

    def _describe(self, drivers):
        """Give the attributes of wires to the nodes that drive them."""
        found = defaultdict(set)
        for bits, attributes in self._described:
            for name, value in attributes:
                # The initial value of each bit, but other values are for the whole wire.
                values = value.partition("'")[2][::-1] if name == r"\init" else [value] * len(bits)
                for bit, each in zip(bits, values, strict=True):
                    driver = drivers.get(self._source(bit))
                    if driver is not None:
                        found[driver[0]].add((*driver[1:], name, each))
        for number, entries in found.items():
            node = self.nodes[number]
            node.about = *node.about, tuple(sorted(entries))
            node.needed |= any(name == r"\keep" for *_, name, _ in entries)

    def runs(self, bits):
        """Bits as texts without names, and as the nodes that drive them."""
        shapes, nodes = [], []
        for bit in bits:
            driver = self._drivers.get(bit)
            if driver is None:
                text = _CONSTANTS[bit] if bit < len(_CONSTANTS) else "undriven"
                shapes.append([text])
                continue
            number, port, offset = driver
            last = shapes[-1] if shapes else [""]
            if last[0] == "run" and nodes[-1] == number and (
                last[1] == port and last[2] + last[3] == offset
            ):
                last[3] += 1
            else:
                shapes.append(["run", port, offset, 1])
                nodes.append(number)
        return shapes, nodes


def _bits(sigspec, wires):
    """The bits of a sigspec, the lowest first."""
    found = []
    for chunk in reversed([*_CHUNK.finditer(sigspec.strip("{ }"))]):
        _, constant, name, high, low = chunk.groups()
        if name is None:
            found += [_CONSTANTS.index(bit) for bit in reversed(constant)]
        elif high is None:
            found += wires[name]
        else:
            found += wires[name][int(low or high) : int(high) + 1]
    return found


def _refined(netlist):
    """The digest of a netlist."""
    nodes = netlist.nodes
    inputs = {}  # of each node that is needed: a digest without names, and its drivers
    waiting = [number for number, node in enumerate(nodes) if node.needed]
    while waiting:
        number = waiting.pop()
        if number in inputs:
            continue
        shapes, drivers = [], []
        for name, bits in nodes[number].inputs:
            shape, found = netlist.runs(bits)
            shapes.append((name, shape))
            drivers += found
        text = repr((nodes[number].about, shapes))
        inputs[number] = hashlib.sha256(text.encode()).digest(), tuple(drivers)
        waiting += drivers
        waiting += nodes[number].unordered
    labels = {number: own for number, (own, _) in inputs.items()}
    order = _order(nodes, inputs)

    def label(number, labels):
        own, drivers = inputs[number]
        parts = [own, *(labels[driver] for driver in drivers)]
        parts += sorted(labels[other] for other in nodes[number].unordered)
        return hashlib.blake2b(b"".join(parts), digest_size=16).digest()

    # Each round tells apart what one more register tells apart.
    held, kinds, before = set(inputs) - set(order), 0, -1
    while kinds != before:
        labels |= {number: label(number, labels) for number in held}
        for number in order:
            labels[number] = label(number, labels)
        before, kinds = kinds, len(set(labels.values()))
    found = [labels[number] for number in inputs if nodes[number].counts]
    found += {labels[number] for number in inputs if not nodes[number].counts}
    return hashlib.sha256(b"".join(sorted(found))).hexdigest()[:32]


def _order(nodes, inputs):
    """The nodes that follow their inputs, each behind its drivers; without loops."""
    readers, missing = defaultdict(list), {}
    for number, (_, drivers) in inputs.items():
        needs = [*drivers, *nodes[number].unordered]
        if not nodes[number].holds:
            missing[number] = sum(not nodes[driver].holds for driver in needs)
            for driver in needs:
                readers[driver].append(number)
    ready = [number for number, count in missing.items() if not count]
    for number in ready:  # which grows
        for reader in readers[number]:
            missing[reader] -= 1
            if not missing[reader]:
                ready.append(reader)
    return ready
