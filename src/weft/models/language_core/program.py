"""`LanguageCoreProgram`: a quantized language model as the memory of a language core."""

from dataclasses import dataclass, replace

import numpy as np

from weft.golden.language import IntegerWeights
from weft.golden.language.operations import exp_table
from weft.golden.language.sampling import GREEDY, Sampling
from weft.golden.language.shape import LLAMA, MICROGPT
from weft.language_core.config import (
    COLUMNS,
    DEPTH,
    GROUP_BYTES,
    GROUPS_OF_WORD,
    HEADS,
    LANES,
    WORD_BYTES,
    LanguageCoreConfig,
)
from weft.language_core.cycles import token_cycles
from weft.language_core.descriptors import DESCRIPTOR_BYTES, Pass
from weft.models.errors import ModelError, require
from weft.models.language_core.image import Image
from weft.models.language_core.microprogram import MicroProgram, compile_microprogram
from weft.models.language_core.overlap import overlapped
from weft.models.language_core.passes import Layout, ModelPasses
from weft.network_core.cycles.memory import ProgramTiming

__all__ = [
    "LanguageCoreProgram", "board_cores", "compile_model", "default_config", "largest_program",
    "refused_by",
]


_LARGEST_DIM = 63 * DEPTH  # an embedding has a head for each vector: 6 bits
_LARGEST_VOCABULARY = 4095 * COLUMNS  # the classifier has a tile for each 8 tokens: 12 bits


@dataclass(frozen=True, eq=False)
class LanguageCoreProgram:
    """What a host writes to a language core, and what it executes for each token.

    Attributes
    ----------
    config : LanguageCoreConfig
    positions : int
        Tokens of the longest text.
    vocabulary : int
    passes : list of Pass
        The list of a token; it starts at word 0. It takes the most probable token.
    sampler : list of Pass
        What `list_of` appends for a temperature; empty if the core has no memory for the logits.
    sampled_groups : int
        Of the activation memory that a temperature needs.
    main : bytes
        The main memory, from word 0 on; keys and values are 0.
    program : bytes
        The program memory from its word ``program_first`` on: weights. Keys and values are before.
        Empty if the core has none.
    program_first : int
    moved : tuple of int
        First word and number of the words of the main memory that come from the program memory.
    tables : int [1024, 2]
        Bases and slopes of exp and of silu.
    words : dict
        Words of the main memory by the kind of their contents.
    program_words : dict
        The same of the program memory.
    caches : list of pair of int
        First words of the keys and of the values of each layer; of the program memory, if there is
        one.
    """

    config: LanguageCoreConfig
    positions: int
    vocabulary: int
    passes: list[Pass]
    sampler: list[Pass]
    sampled_groups: int
    main: bytes
    program: bytes
    program_first: int
    moved: tuple[int, int]
    tables: np.ndarray
    words: dict[str, int]
    program_words: dict[str, int]
    caches: list[tuple[int, int]]

    def list_of(self, how: Sampling) -> list[Pass]:
        """The list of a token that chooses the next one by ``how``.

        Raises ModelError if the core has no memory for the logits of a temperature.
        """
        if how == GREEDY:
            return self.passes
        require(
            bool(self.sampler),
            f"temperature must be 0 on this core: with the {self.vocabulary:,} logits of a token"
            f" the maps need {self.sampled_groups:,} groups, but the core has"
            f" {self.config.groups:,}",
        )
        distances, exponentials, coin, pick = self.sampler
        return [
            *self.passes[:-1], replace(self.passes[-1], last=0),
            replace(distances, shift=how.shift), replace(exponentials, addend=how.least), coin,
            replace(pick, addend=how.least),
        ]

    def token_cycles(
        self, how: Sampling, position: int, *, emits: bool = True,
        memory: ProgramTiming | None = None,
    ) -> int:
        """Cycles of the token at a position, as `weft.language_core.cycles.token_cycles`."""
        return token_cycles(self.list_of(how), position, emits=emits, memory=memory)

    def choice(self, how: Sampling) -> tuple[int, bytes]:
        """What a host writes before a start to choose tokens by ``how``.

        Returns
        -------
        first : int
            Parameter group.
        data : bytes
            The end of the list, from the classifier on, and the multiplier of the temperature.

        Raises
        ------
        ModelError
            As `list_of`.
        """
        first = len(self.passes) - 1
        words = _packed(self.list_of(how)[first:])
        if how != GREEDY:
            words[1, DESCRIPTOR_BYTES:][:GROUP_BYTES] = np.full(
                LANES, -how.multiplier, "<i2"
            ).view(np.uint8)
        return first * GROUPS_OF_WORD, words.tobytes()


def _packed(passes):
    """The words of descriptors, uint8 [passes, 128]."""
    words = np.zeros((len(passes), WORD_BYTES), np.uint8)
    for word, each in zip(words, passes, strict=True):
        word[:DESCRIPTOR_BYTES] = np.frombuffer(each.pack(), np.uint8)
    return words


def compile_model(
    weights: IntegerWeights, config: LanguageCoreConfig, positions: int
) -> LanguageCoreProgram | MicroProgram:
    """Place a model in the memories of a core, and make its list.

    Parameters
    ----------
    weights : IntegerWeights
    config : LanguageCoreConfig
    positions : int
        Of the cache; a multiple of 16, with a microprogram of 4, at most those of the model.

    Raises
    ------
    ModelError
        If the core cannot compute a shape, or a memory is too small.
    """
    if config.microprogram:
        _check_architecture(weights, MICROGPT, "with")
        return compile_microprogram(weights, config, positions)
    _check_architecture(weights, LLAMA, "without")
    _check(weights, positions)
    image, program = Image(), Image() if config.program_words else None
    count = ModelPasses.count(weights.shape.layers, program=program is not None)
    groups = Layout(weights.shape, positions).sampled_groups
    sampled = groups <= config.groups
    image.take("list", count + sampled * ModelPasses.SAMPLER)
    model = ModelPasses(
        weights, positions, image, sampled=sampled, program=program, int4=config.int4
    )
    streamed = program or Image()
    larger = "a larger core" if config.program_words else "a core that is larger or has an SDRAM"

    def check(words=""):
        """Raises ModelError if a memory is too small for what it has until now."""
        for name, needed, available in (
            (f"words ({_sizes(image)})", image.used, config.words),
            (f"words of program memory ({_sizes(streamed)})", streamed.used, config.program_words),
            ("groups", model.layout.groups, config.groups),
            ("side groups", model.layout.side_groups, config.side_groups),
        ):
            require(
                needed <= available,
                f"the model with {positions} positions needs {words}{needed} {name}, but the core"
                f" has {available}; take fewer positions or {larger}",
            )

    try:
        passes, sampler = model.list(), []
    except ValueError:  # an address is too large for its field, before all words are counted
        check("at least ")
        raise
    if sampled:  # the multipliers are behind the first descriptor, in its word
        multipliers = count * GROUPS_OF_WORD + DESCRIPTOR_BYTES // GROUP_BYTES
        sampler = model.sampler(multipliers)
    check()
    passes, sampler = overlapped(passes, positions), overlapped(sampler, positions)
    image.replace(0, _packed(passes + sampler))
    tables = [np.stack([table.base, table.slope], -1) for table in (
        exp_table(), weights.layers[0].silu,
    )]
    first = streamed.sizes.get("cache", 0)
    return LanguageCoreProgram(
        config, positions, weights.shape.vocab, passes, sampler, groups, image.bytes(),
        streamed.bytes()[first * WORD_BYTES :], first, model.moved, np.concatenate(tables),
        image.sizes, streamed.sizes, model.caches,
    )


def _sizes(image):
    return ", ".join(f"{name} {size}" for name, size in image.sizes.items())


def default_config(weights: IntegerWeights) -> LanguageCoreConfig:
    """The core that executes a model where none is given."""
    if weights.shape.is_llama:
        return LanguageCoreConfig()
    return LanguageCoreConfig(words=1024, groups=128, side_groups=256, microprogram=True)


# Of the board with an SDRAM, which `weft.boards` tells; a PC without a board has no such package.
_SDRAM_WORDS = 1 << 18


def board_cores(weights: IntegerWeights) -> dict[str, LanguageCoreConfig]:
    """The cores of the board for an architecture, by their purposes, with the target generic."""
    core = default_config(weights)
    if not weights.shape.is_llama:
        return {"language": core}
    larger = replace(core, program_words=_SDRAM_WORDS, int4=True)
    return {"language": core, "language-sdram": larger}


def refused_by(weights: IntegerWeights, config: LanguageCoreConfig) -> str:
    """Why a core computes no text of a model, not even a short one; empty if it does."""
    try:
        compile_model(weights, config, LANES if config.microprogram else DEPTH)
    except ModelError as error:
        return str(error)
    return ""


def largest_program(
    weights: IntegerWeights, config: LanguageCoreConfig
) -> LanguageCoreProgram | MicroProgram:
    """`compile_model` with as many positions as the core has space for.

    Raises ModelError if the core cannot compute a shape, or has no space for 16 positions, with a
    microprogram for 4.
    """
    fits, unit = None, LANES if config.microprogram else DEPTH
    low, high = 1, weights.shape.positions // unit  # the answer lies in low - 1..high
    while low <= high:
        middle = (low + high) // 2
        try:
            fits, low = compile_model(weights, config, unit * middle), middle + 1
        except ModelError:
            high = middle - 1
    return fits or compile_model(weights, config, unit)


def _check_architecture(weights, wanted, how):
    found = weights.shape.architecture
    require(
        found == wanted,
        f"the model must be a {wanted} for a core {how} a microprogram, not a {found}; weft build"
        f" {_BOARDS[found]} --for language makes a core for it",
    )


_BOARDS = {LLAMA: "ulx3s-85f", MICROGPT: "icebreaker"}


def _check(weights, positions):
    """Raises ModelError for a model that the core cannot compute."""
    shape = weights.shape
    head = shape.head_dim
    require(
        head == COLUMNS or head % DEPTH == 0,
        f"head_dim must be 8 or a multiple of 16, not {head}",
    )
    for name, value, unit in (
        ("dim", shape.dim, DEPTH), ("kv_dim", shape.kv_dim, DEPTH), ("vocab", shape.vocab, COLUMNS),
        ("positions", positions, DEPTH),
    ):
        good = value > 0 and value % unit == 0
        require(good, f"{name} must be a multiple of {unit}, not {value}")
    for name, value, most in (
        ("heads", shape.heads, HEADS), ("dim", shape.dim, _LARGEST_DIM),
        ("vocab", shape.vocab, _LARGEST_VOCABULARY),
    ):
        require(value <= most, f"{name} must be in 1..{most}, not {value}")
    require(
        positions <= shape.positions,
        f"positions must be in 16..{shape.positions}, not {positions}",
    )
    first = weights.layers[0].silu
    require(
        all(np.array_equal(first.base, layer.silu.base) for layer in weights.layers),
        "all layers must have the same bits for the input of SiLU, because the core has one table",
    )
    require(
        weights.embedding.multipliers.min() >= 0,
        "the multipliers of the embedding must be at least 0",
    )
