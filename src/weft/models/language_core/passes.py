"""The passes of a token, and the words of the main memory that they read."""

from dataclasses import replace

import numpy as np

from weft.golden.int4 import scales_of
from weft.golden.language import IntegerWeights, Shape
from weft.golden.language.integer_model import VALUE_BITS, Rows
from weft.golden.language.operations import reciprocal_table
from weft.language_core.config import COLUMNS, DEPTH, GROUPS_OF_WORD, HEADS, LANES
from weft.language_core.descriptors import (
    Blocks,
    Factor,
    Kind,
    Operand,
    OutPlace,
    ParameterPlace,
    Pass,
    Reduction,
    Source,
    Transfer,
    packed_beats,
)
from weft.language_core.latencies import RING_WORDS
from weft.models.language_core.image import Image, matrix_words, packed_words, table_groups

__all__ = ["Layout", "ModelPasses"]

_GROUPS = DEPTH // LANES  # of a vector
_TILE = COLUMNS // LANES  # groups of a tile


def _vectors(values):
    return -(-values // DEPTH)


class Layout:
    """The places of maps in the activation memory and in the side memory, in groups.

    ``groups`` are enough to take the most probable token: its logits are not kept. To sample from
    the logits takes ``sampled_groups``.

    Heads of 8 channels share a vector. Then the queries of a vector have keys that share a word:
    head ``(w * 2 + half) * group + r`` has place ``(w * group + r) * 2 + half``.

    Parameters
    ----------
    shape : Shape
    positions : int
    """

    def __init__(self, shape: Shape, positions: int):
        self.shape, self.positions = shape, positions
        self.halves = max(1, DEPTH // shape.head_dim)  # heads in a vector
        self.windows = max(1, shape.head_dim // DEPTH)  # vectors of a head
        self.outer = shape.kv_heads // self.halves  # sets of heads whose keys share words
        heads = np.arange(shape.heads).reshape(self.outer, self.halves, shape.group)
        order = heads.swapaxes(1, 2).reshape(-1)
        channels = np.arange(shape.dim).reshape(shape.heads, shape.head_dim)
        self.channels = channels[order].reshape(-1)  # of the queries, in their places
        dim, kv = shape.dim // LANES, shape.kv_dim // LANES
        hidden = _vectors(shape.hidden) * _GROUPS
        sizes = {
            "x": dim, "a": dim, "q": dim, "k": kv, "v": kv,
            "scores": shape.heads * positions // LANES, "h1": hidden, "h3": hidden,
        }
        ends = np.cumsum([*sizes.values()])
        first = dict(zip(sizes, (ends - [*sizes.values()]).tolist(), strict=True))
        self.x, self.a, self.q, self.k, self.v = (first[name] for name in ("x", "a", "q", "k", "v"))
        self.scores, self.h1, self.h3 = first["scores"], first["h1"], first["h3"]
        self.logits = self.q  # whose map and those behind it are not needed any more
        self.groups = int(ends[-1])
        self.sampled_groups = max(self.groups, self.logits + shape.vocab // LANES)
        self.side_x, self.side_h3 = 0, dim
        self.side_groups = dim + hidden


class ModelPasses:
    """The passes of a token, in their order; the weights go to an `Image` meanwhile.

    Parameters
    ----------
    weights : IntegerWeights
    positions : int
    image : Image
    sampled : bool
        The activation memory keeps the logits.
    program : Image, optional
        The program memory of a core that has one: it gets the weights, and keys and values. The
        main memory then has the keys and values of one layer, while it is computed.
    int4 : bool
        The core unpacks weights: those of a product that are of int4 are packed.

    Attributes
    ----------
    layout : Layout
    caches : list of pair of int
        First words of the keys and of the values of each layer, after `list`; with ``program``,
        words of it. Position p of the
        channel c of a key is byte ``c % 16`` of column ``p % 8`` of word ``first + c // 16 *
        (positions // 8) + p // 8``; of a value, byte ``p % 16`` of column ``c % 8`` of word
        ``first + c // 8 * (positions // 16) + p // 16``.
    moved : tuple of int
        First word and number of the words of the main memory that come from the program memory.
    """

    PER_LAYER = 20
    OTHERS = 6  # two of the embedding, four of the classifier
    SAMPLER = 4  # behind the classifier
    MOVES = 4  # of a layer, with a program memory: loads and stores of keys and values
    ROW = 1  # the load of the embedding, with a program memory

    def __init__(
        self, weights: IntegerWeights, positions: int, image: Image, *, sampled: bool,
        program: Image | None = None, int4: bool = False,
    ):
        self.weights = weights
        self.sampled = sampled
        self.program = program
        self.int4 = int4
        self.positions = positions
        self.image = image
        self.layout = Layout(weights.shape, positions)
        self.caches: list[tuple[int, int]] = []
        self.moved = 0, 0
        self._roots = self._table("roots", weights.rsqrt)
        self._reciprocals = self._table("reciprocals", reciprocal_table())
        angles = np.stack([weights.cos, weights.sin], -1)[:positions]  # [position, pair, 2]
        groups = angles.reshape(positions, -1, LANES).swapaxes(0, 1)
        self._angles = image.put_groups("angles", groups)
        if program is not None:
            # The caches come first: a host writes what follows.
            self._outside = iter([self._take_cache(program) for _ in weights.layers])
            first = image.used
            self._ring = image.take("read ahead", -image.used % RING_WORDS + RING_WORDS)
            self._ring += -self._ring % RING_WORDS
            self._tile = image.take("row", _vectors(weights.shape.dim))
            self._cached = self._take_cache(image)
            self.moved = first, image.used - first
        rows, self._row_beats = self._words(weights.embedding, across=program is None)
        self._rows = (image if program is None else program).put("embedding", rows)

    def _words(self, rows, *, across=False):
        """The words of weights, and ``packed`` of the passes that read them."""
        scales = scales_of(rows.weights) if self.int4 else None
        if scales is None:
            return matrix_words(rows.weights.T, across=across), 0
        beats = packed_beats(_vectors(rows.weights.shape[1]))
        return packed_words(rows.weights, scales), beats - 1

    def _take_cache(self, image):
        """The first words of keys and values of a layer."""
        keys = self.weights.shape.kv_dim // DEPTH * self.positions // COLUMNS
        values = self.weights.shape.kv_dim // COLUMNS * self.positions // DEPTH
        return image.take("cache", keys), image.take("cache", values)

    @classmethod
    def count(cls, layers: int, *, program: bool) -> int:
        """The passes of a token, without those of `sampler`."""
        moves = layers * cls.MOVES + cls.ROW if program else 0
        return layers * cls.PER_LAYER + cls.OTHERS + moves

    def sampler(self, multipliers: int) -> list[Pass]:
        """The passes after the classifier that choose a random token.

        The first one has the shift of a temperature, and its multipliers, negative, in the
        parameter group ``multipliers``. The second one and the last one have min-p.
        """
        at = self.layout
        place = {
            "count_1": self.weights.shape.vocab // COLUMNS, "operand_1": _TILE, "out_1": _TILE,
            "unmasked": 1, "emitting": 1, "parameter": multipliers, "parameter_0": 0,
        }
        logits = at.logits, _TILE, at.logits
        return [
            self._map(
                *logits, lane_operand=Operand.DISTANCE, factor=Factor.PARAMETER,
                reduction=Reduction.MAXIMUM, **place,
            ),
            self._map(
                *logits, lane_operand=Operand.EXP, reduction=Reduction.TOTAL, **place,
            ),
            Pass(kind=Kind.SCALAR, source=Source.COIN, emitting=1),
            self._map(*logits, reduction=Reduction.PICK, last=1, **place),
        ]

    def list(self) -> list[Pass]:
        """The passes of a token; the last one ends the list."""
        passes = self._embedding()
        for layer in self.weights.layers:
            passes += self._attention(layer) + self._swiglu(layer)
        passes += [replace(each, emitting=1) for each in self._classifier()]
        passes[-1] = replace(passes[-1], last=1)
        return passes

    def _table(self, name, table):
        return self.image.put_groups(name, table_groups(table.base, table.slope))

    def _product(self, rows: Rows, x, out, *, embedded=False, **others):
        """``scale(weights @ x)``, of words that are put; or ``embedded``, of the embedding."""
        outputs, inputs = rows.weights.shape
        vectors, tiles = _vectors(inputs), -(-outputs // COLUMNS)
        image = self.image if self.program is None else self.program
        first, packed = self._rows, self._row_beats
        if not embedded:
            weights, packed = self._words(rows)
            first = image.put("weights", weights)
        words = {"main": first, "main_0": 1, "main_1": vectors}
        if self.program is not None:
            words |= {
                "main": self._ring, "transfer": Transfer.STREAM, "program": first,
                "packed": packed,
            }
        elif embedded:
            words |= {"main_0": tiles, "main_1": 1}
        return Pass(**{
            "kind": Kind.PRODUCT, "count_0": vectors, "count_1": tiles, **words,
            "operand": x, "operand_0": _GROUPS,
            "parameter": self.image.put_groups("multipliers", rows.multipliers),
            "parameter_0": 1, "parameter_1": _TILE, "factor": Factor.PARAMETER,
            "shift": rows.shift, "out": out, "out_0": 1, "out_1": _TILE, **others,
        })

    @staticmethod
    def _map(x, groups, out, **others):
        """A pass over ``groups`` groups from ``x`` on, to ``out``."""
        return Pass(**{
            "kind": Kind.VECTOR, "count_0": groups, "operand": x, "operand_0": 1,
            "parameter_0": 1, "out": out, "out_0": 1, **others,
        })

    def _channels(self, x, channels, order, out, **others):
        """``scale`` with a multiplier for each channel; ``order`` selects them."""
        multipliers = self.image.put_groups("multipliers", channels.multipliers[order])
        return self._map(
            x, len(order) // LANES, out, parameter=multipliers, factor=Factor.PARAMETER,
            shift=channels.shift, **others,
        )

    def _norm(self, shift):
        """``a = rms_norm(x)``; the squares of x are there."""
        at, groups = self.layout, self.weights.shape.dim // LANES
        return [
            Pass(
                kind=Kind.SCALAR, source=Source.ROOT, addend=self.weights.epsilon,
                parameter=self._roots,
            ),
            self._map(at.x, groups, at.a, factor=Factor.SCALE, shift=shift),
        ]

    def _embedding(self):
        """``x = scale(row of the token)``."""
        rows, at = self.weights.embedding, self.layout
        vectors, tiles = _vectors(rows.weights.shape[1]), rows.weights.shape[0] // COLUMNS
        scales = self.image.put_groups("multipliers", rows.multipliers)
        place = {"parameter": self._rows, "parameter_2": tiles}  # words
        loads = []
        if self.program is not None:
            place = {"parameter": self._tile, "parameter_2": 1, "transfer": Transfer.LOAD}
            loads = [self._move(
                Transfer.LOAD, self._tile, self._rows, count_0=vectors, main_0=1,
                parameter_place=ParameterPlace.ROW, packed=self._row_beats,
            )]
        place |= {name: place[name] * GROUPS_OF_WORD for name in ("parameter", "parameter_2")}
        return [
            *loads,
            Pass(  # all heads have the same scale: the ones from 16 on have those of others
                kind=Kind.SCALAR, source=Source.PARAMETER, heads=min(vectors, HEADS),
                parameter=scales, parameter_place=ParameterPlace.TOKEN,
            ),
            self._map(
                0, 2, at.x, count_1=2, count_2=vectors, heads=vectors, out_1=2, out_2=4,
                parameter_0=0, parameter_1=1, parameter_place=ParameterPlace.ROW, **place,
                lane_operand=Operand.BYTE, factor=Factor.SCALE, shift=rows.shift,
                out_place=OutPlace.BOTH, side=at.side_x, reduction=Reduction.SQUARES,
            ),
        ]

    @staticmethod
    def _move(transfer, main, program, **others):
        """Words move between the program memory and the main memory."""
        return Pass(
            kind=Kind.SCALAR, transfer=transfer, main=main, program=program, **others
        )

    def _attention(self, layer):
        """``x = x + o @ attention(rms_norm(x))``."""
        shape, at = self.weights.shape, self.layout
        order, key_order = at.channels, np.arange(shape.kv_dim)
        passes = self._norm(layer.attention_norm)
        for part, out, rows in (
            (layer.q, at.q, order), (layer.k, at.k, key_order), (layer.v, at.v, key_order),
        ):
            chosen = replace(
                part, weights=part.weights[rows], multipliers=part.multipliers[rows]
            )
            passes.append(self._product(chosen, at.a, out))
        pairs = shape.head_dim // LANES
        passes.append(self._map(  # q and k follow each other
            at.q, pairs, at.q, count_1=shape.heads + shape.kv_heads, operand_1=pairs, out_1=pairs,
            parameter=self._angles, parameter_0=self.positions,
            parameter_place=ParameterPlace.POSITION, lane_operand=Operand.PAIR, shift=15,
        ))
        passes.append(self._channels(at.q, layer.q_scores, order, at.q))
        cache = self._cache(layer, passes)
        passes += self._heads(layer, *cache)
        back = replace(layer.o, weights=layer.o.weights[:, order])
        passes.append(self._residual(back, at.a))
        return passes

    def _cache(self, layer, passes):
        """Append keys and values to the cache; their first words."""
        shape, at, positions = self.weights.shape, self.layout, self.positions
        windows, tiles = shape.kv_dim // DEPTH, shape.kv_dim // COLUMNS
        row, block = positions // COLUMNS, positions // DEPTH  # words of a window, and of a tile
        loads, stores = [], []
        if self.program is None:
            keys, values = self._take_cache(self.image)
            self.caches.append((keys, values))
        else:
            self.caches.append(next(self._outside))
            keys, values = self._cached
            loads, stores = self._cache_moves(windows, row, tiles, block)
        passes += loads
        every = np.arange(shape.kv_dim)
        append = self._channels(at.k, layer.k_cache, every, keys)
        passes.append(replace(
            append, count_0=_GROUPS, count_1=windows, operand_1=_GROUPS, parameter_1=_GROUPS,
            out_0=0, out_1=row, out_place=OutPlace.KEYS,
        ))
        passes.append(self._map(
            at.v, _TILE, values, count_1=tiles, operand_1=_TILE, out_0=0,
            out_1=block, out_place=OutPlace.VALUES,
        ))
        passes += stores
        return keys, values

    def _cache_moves(self, windows, row, tiles, block):
        """All words of the layer until the position are loaded; those of the position are stored.

        Keys have ``windows`` parts of ``row`` words, values ``tiles`` parts of ``block`` words.
        """
        loads, stores = [], []
        for words, blocks, count, step, place in zip(
            zip(self._cached, self.caches[-1], strict=True), (Blocks.EIGHTHS, Blocks.SIXTEENTHS),
            (windows, tiles), (row, block), (OutPlace.KEYS, OutPlace.VALUES), strict=True,
        ):
            loads.append(self._move(
                Transfer.LOAD, *words, blocks_0=blocks, count_1=count, main_0=1, main_1=step
            ))
            stores.append(self._move(
                Transfer.STORE, *words, count_0=count, main_0=step, out_place=place
            ))
        return loads, stores

    def _heads(self, layer, keys, values):
        """Scores, exponentials, and means of the values of all heads, to ``a``."""
        shape, at, positions = self.weights.shape, self.layout, self.positions
        head, row = positions // LANES, positions // COLUMNS
        tiles, block = shape.head_dim // COLUMNS, positions // DEPTH
        loops = {"count_2": at.halves, "count_3": shape.group, "count_4": at.outer}
        vector = at.windows * _GROUPS  # groups of the queries in it
        return [
            Pass(
                kind=Kind.PRODUCT, count_0=at.windows, blocks_1=Blocks.EIGHTHS, **loops,
                main=keys, main_0=row, main_1=1, main_4=at.windows * row,
                operand=at.q, operand_0=_GROUPS, operand_3=vector, operand_4=vector * shape.group,
                halved=at.halves - 1, heads=shape.heads, shift=layer.score_shift,
                out=at.scores, out_0=1, out_1=_TILE, out_2=head, reduction=Reduction.MAXIMUM,
            ),
            Pass(
                kind=Kind.VECTOR, count_0=_GROUPS, blocks_1=Blocks.SIXTEENTHS,
                count_2=shape.heads, heads=shape.heads, lane_operand=Operand.EXP,
                operand=at.scores, operand_0=1, operand_1=_GROUPS, operand_2=head,
                out=at.scores, out_0=1, out_1=_GROUPS, out_2=head, reduction=Reduction.TOTAL,
            ),
            Pass(
                kind=Kind.SCALAR, source=Source.RECIPROCAL, heads=shape.heads,
                parameter=self._reciprocals,
            ),
            Pass(
                kind=Kind.PRODUCT, blocks_0=Blocks.SIXTEENTHS, count_1=tiles, **loops,
                main=values, main_0=1, main_1=block, main_2=tiles * block,
                main_4=at.halves * tiles * block,
                operand=at.scores, operand_0=_GROUPS, operand_2=head, operand_3=at.halves * head,
                operand_4=at.halves * shape.group * head,
                heads=shape.heads, factor=Factor.SCALE, shift=16 - VALUE_BITS,
                out=at.a, out_0=1, out_1=_TILE, out_2=shape.head_dim // LANES,
            ),
        ]

    def _residual(self, rows, operand):
        """``x = x + rows @ operand``, and the squares of x."""
        at = self.layout
        return self._product(
            rows, operand, at.x, out_place=OutPlace.BOTH, side=at.side_x, residual=1,
            reduction=Reduction.SQUARES,
        )

    def _swiglu(self, layer):
        """``x = x + w2 @ (silu(w1 @ a) * (w3 @ a))`` with ``a = rms_norm(x)``."""
        at = self.layout
        return [
            *self._norm(layer.ffn_norm),
            self._product(layer.w1, at.a, at.h1),
            self._product(layer.w3, at.a, at.h3, out_place=OutPlace.BOTH, side=at.side_h3),
            self._map(
                at.h1, -(-self.weights.shape.hidden // LANES), at.h1, lane_operand=Operand.SILU,
                factor=Factor.SIDE, side=at.side_h3, shift=layer.gate_shift,
            ),
            self._residual(layer.w2, at.h1),
        ]

    def _classifier(self):
        """The next token, the index of the largest logit."""
        w, at = self.weights, self.layout
        kept = {} if self.sampled else {"out_0": 0, "out_1": 0}
        return [
            *self._norm(w.final_norm),
            self._channels(at.a, w.final_gain, np.arange(w.shape.dim), at.a),
            self._product(
                w.classifier, at.a, at.logits, embedded=w.tied,
                reduction=Reduction.BEST, unmasked=1, **kept,
            ),
        ]
