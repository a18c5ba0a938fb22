"""The step sequencer: the steps of a job, one a cycle, and the tiles that they complete."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from weft.hw.network_core.interface import JobPort
from weft.hw.network_core.layouts import ComputedTile
from weft.hw.network_core.steps.panels import LoopCounter, ReadyPanel
from weft.latencies import STEP
from weft.network_core.latencies import lead, map_read, starts_steps

__all__ = ["DrainPace", "JobStep", "StepSequencer"]


class DrainPace(wiring.Component):
    """Tells when a tile may end: ``cycles`` after the tile before, and with a credit.

    Parameters
    ----------
    cycles : int
        Cycles in which the array drains a tile.
    credits : int
        Tiles that the result buffer holds.

    Attributes
    ----------
    may_drain : Out, 1 bit
        A tile may end in this cycle.
    drain : In, 1 bit
        Pulse: a tile ends in this cycle.
    release : In, 1 bit
        Pulse: the results of a tile have left the result buffer.
    """

    def __init__(self, *, cycles, credits):
        self.cycles = cycles
        self.credits = credits
        super().__init__({"may_drain": Out(1, init=1), "drain": In(1), "release": In(1)})

    def elaborate(self, platform):
        m = Module()
        credit_count = Signal(range(self.credits + 1), init=self.credits)
        cycles_left = Signal(range(self.cycles))
        m.d.sync += credit_count.eq(credit_count - self.drain + self.release)
        with m.If(self.drain):
            m.d.sync += [
                cycles_left.eq(self.cycles - 1),
                self.may_drain.eq(((credit_count > 1) | self.release) & (self.cycles == 1)),
            ]
        with m.Else():
            m.d.sync += [
                cycles_left.eq(cycles_left - cycles_left.any()),
                self.may_drain.eq((credit_count.any() | self.release) & ~cycles_left[1:].any()),
            ]
        return m


class JobStep(data.StructLayout):
    """A step of the array.

    ============== ================================================================
    ``en``         a step is computed in this cycle; otherwise all flags are 0
    ``clear``      the first step of a tile: its sums start from 0; not after a partial job
    ``capture``    the last step of a tile: its sums are captured
    ``drain``      the last step of a tile: its sums are results, and the array drains
    ``panel_last`` the last step of a panel
    ``b_addr``     the word of B
    ============== ================================================================
    """

    def __init__(self, config):
        super().__init__({
            "en": 1, "clear": 1, "capture": 1, "drain": 1, "panel_last": 1,
            "b_addr": range(config.b_words),
        })


class StepSequencer(wiring.Component):
    """``for panel: for tile of its columns: for word in tile_words``, one step a cycle.

    The first step of a panel waits for the panel. The last step of a tile waits for space for its
    results in the result buffer, and until the array has drained the tile before, ``rows`` cycles,
    or half of them with the option ``two_rows``.
    So the stages behind the array never stall it. A step waits for nothing else.

    The tiles of a partial job are no results: their sums stay in the array. The first tile of the
    next job goes on with them.

    Each tile is announced at ``tiles`` in the cycle of its last step. Steps and tiles leave LATENCY
    cycles after the decision on them, in which the panel is taken.

    Parameters
    ----------
    config : NetworkCoreConfig
    buffer_rows : int
        Rows of the result buffer.

    Attributes
    ----------
    job : In, `weft.hw.network_core.interface.JobPort`
        A panel may follow two cycles after its start.
    panel : In, stream of `ReadyPanel`
    release : In, 1 bit
        Pulse: the results of a tile have left the result buffer.
    step : Out, `JobStep`
    tiles : Out, `ComputedTile`
    ending : Out, 1 bit; only if `weft.network_core.latencies.starts_steps`
        Pulse, `weft.network_core.latencies.lead` cycles before ``done``: the next job may start.
        With the option ``early`` each job has it: its last step has read A and B.
    done : Out, 1 bit
        Pulse: a partial job has ended. Its last step has read A and B. Other jobs have none.
    """

    LATENCY = STEP

    def __init__(self, config, *, buffer_rows):
        self.config = config
        self.credits = buffer_rows // config.tile_rows
        super().__init__({
            "job": In(JobPort(config)),
            "panel": In(stream.Signature(ReadyPanel(config))),
            "release": In(1),
            "step": Out(JobStep(config)),
            "tiles": Out(ComputedTile(config)),
            **({"ending": Out(1)} if starts_steps(config) else {}),
            "done": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        job, cols = self.job.fields, self.config.array.cols
        m.submodules.word_loop = word_loop = LoopCounter(len(job.tile_words))
        m.submodules.tile_loop = tile_loop = LoopCounter(len(job.columns))
        m.submodules.pace = pace = DrainPace(cycles=self.config.tile_rows, credits=self.credits)
        panel_first, clear = Signal(init=1), Signal(init=1)  # the next step: begins one; clears
        may_run, go, tile_end, panel_end = Signal(), Signal(), Signal(), Signal()
        drain = Signal()
        m.d.comb += [
            may_run.eq(pace.may_drain | ~word_loop.last),
            self.panel.ready.eq(may_run & panel_first),
            go.eq(may_run & (self.panel.valid | ~panel_first)),
            tile_end.eq(go & word_loop.last), panel_end.eq(tile_end & tile_loop.last),
            word_loop.count.eq(job.tile_words), word_loop.restart.eq(self.job.start),
            word_loop.advance.eq(go),
            tile_loop.count.eq((job.columns + cols - 1) >> ceil_log2(cols)),
            tile_loop.restart.eq(self.job.start), tile_loop.advance.eq(tile_end),
            drain.eq(tile_end & ~job.partial), pace.drain.eq(drain), pace.release.eq(self.release),
        ]
        with m.If(go):
            m.d.sync += [panel_first.eq(panel_end), clear.eq(drain)]
        step = Signal.like(self.step)
        m.d.comb += [
            step.en.eq(go), step.clear.eq(go & clear),
            step.capture.eq(tile_end), step.drain.eq(drain), step.panel_last.eq(panel_end),
            step.b_addr.eq(self._b_addr(m, go, tile_end, panel_end)),
        ]
        m.d.sync += self.step.eq(step)
        last = self._announce(m, panel_first, tile_end, panel_end, drain, tile_loop.last)
        self._end(m, panel_end & last, job.partial)
        return m

    def _end(self, m, last, partial):
        """End a partial job after its last step: a reset must stop the pulse under way."""
        read = STEP + map_read(self.config)
        ends = Signal(read + lead(self.config))
        if self.config.early:
            m.d.sync += ends.eq(Cat(last, ends))
            m.d.comb += [self.ending.eq(ends[-1]), self.done.eq(ends[-1] & partial)]
            return
        m.d.sync += ends.eq(Cat(last & partial, ends))
        m.d.comb += self.done.eq(ends[-1])
        if lead(self.config):
            m.d.comb += self.ending.eq(ends[read - 1])

    def _b_addr(self, m, go, tile_end, panel_end):
        """The word of B of the next step."""
        job = self.job.fields
        word, next_tile = Signal.like(self.step.b_addr), Signal.like(self.step.b_addr)
        with m.If(self.job.start | panel_end):
            m.d.sync += [word.eq(job.b_word), next_tile.eq(job.b_word + job.b_step)]
        with m.Elif(tile_end):
            m.d.sync += [word.eq(next_tile), next_tile.eq(next_tile + job.b_step)]
        with m.Elif(go):
            m.d.sync += word.eq(word + 1)
        return word

    def _announce(self, m, panel_first, tile_end, panel_end, drain, last_tile):
        """The tile of the step that is decided on; returns whether its panel is the last one."""
        job, cols = self.job.fields, self.config.array.cols
        panel, line = Signal(ReadyPanel(self.config)), Signal.like(self.tiles.line)
        r_panel = Signal.like(panel)
        last_cols = ((job.columns - 1) & (cols - 1)) + 1
        m.d.comb += panel.eq(Mux(panel_first, self.panel.payload, r_panel))
        m.d.sync += [
            r_panel.eq(panel),
            self.tiles.valid.eq(drain), self.tiles.rows.eq(panel.rows),
            self.tiles.cols.eq(Mux(last_tile, last_cols, cols)), self.tiles.line.eq(line),
            self.tiles.tile_last.eq(last_tile), self.tiles.last.eq(last_tile & panel.last),
        ]
        with m.If(self.job.start | panel_end):
            m.d.sync += line.eq(job.parameter_line)
        with m.Elif(tile_end):
            m.d.sync += line.eq(line + self.config.row_chunks)
        return panel.last
