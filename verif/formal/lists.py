"""Rules of the list reader and of the loader: order of jobs and loads, limits of accesses."""

from dataclasses import replace
from unittest.mock import patch

from amaranth.hdl import Cat, Fragment, Module, Signal

from verif.formal.bench import FormalBench
from verif.formal.rules import Rules
from weft.config import Config
from weft.hw.network_core.lists.list_execution import ListExecution
from weft.hw.network_core.lists.reader_head import ReaderHead
from weft.hw.network_core.loads.loader import ListLoader
from weft.network_core.config import NetworkCoreConfig
from weft.network_core.descriptors import LoadTarget

__all__ = [
    "BANK", "EARLY_START", "WORD", "EarlyListRules", "EarlyStartRules", "ListRules", "LoaderRules",
    "list_bench", "loader_bench",
]

# One read returns a whole descriptor; the memory has an odd number of banks.
CHIP = NetworkCoreConfig(
    array=Config(rows=8, cols=8, depth=16, lanes=1, requantize="single", activation="none"),
    words=16, b_words=4, lines=4, read_vectors=8,
)
# Jobs start early. It has 8 banks.
EARLY_CHIP = replace(CHIP, array=replace(CHIP.array, rows=1))
# With the option ``early``.
EARLY_START = replace(CHIP, early=True)
# A beat of codes of int4 is a whole word.
LOADER_CHIP = replace(CHIP, read_vectors=4, int4=True)
COUNT_BITS = 3  # of the counts of jobs and loads in the proof
WORDS = 3  # of a load in the proof, at most
BANK, WORD = 4, 5  # bits of an address


class _LimitRules(Rules):
    """What rules of several blocks share: the limits of their accesses.

    ``WINDOW`` is the port of the block with these limits.
    """

    WINDOW = "window"

    config = CHIP

    def limits(self):
        """The first word of the window, and the one behind its last."""
        return getattr(self, f"{self.WINDOW}_base"), getattr(self, f"{self.WINDOW}_limit")

    def inside(self, bank, word, vectors):
        """Whether so many vectors from an address on lie within the limits."""
        base, limit = self.limits()
        last = bank + vectors - 1 >= self.config.banks
        return (word >= base) & (word + last < limit)

    def answered(self, m, bits):
        """Assume that vectors arrive only for reads, and that few reads are in flight."""
        flight = Signal(bits)
        read = self.reads_request_valid & self.reads_request_ready
        m.d.sync += flight.eq(flight + read - self.reads_data_valid)
        self.assume(m, ~self.reads_data_valid | flight.any())
        self.assume(m, ~read | ~flight.all())

    def stable_limits(self, m):
        """Assume that base and limit do not change, and that the limit is legal."""
        first, (base, limit) = self.after_reset(m), self.limits()
        for value in (base, limit):
            self.assume(m, first | (self.past(m, value) == value))
        self.assume(m, limit <= CHIP.words)


class ListRules(_LimitRules):
    """The order of jobs and loads. It assumes that only what runs ends, and small counts."""

    WINDOW = "list_window"  # ``window`` limits the maps, which the jobs check
    PINS = {
        "begin": 1, "list_bank": BANK, "log_bank": BANK, "list_window_base": WORD,
        "list_window_limit": WORD,
        "job_start": 1, "job_done": 1, "job_fields_loads": 16,
        "load_request_valid": 1, "load_request_ready": 1, "load_request_payload_jobs": 16,
        "load_done": 1,
        "reads_request_valid": 1, "reads_request_ready": 1, "reads_request_payload_bank": BANK,
        "reads_request_payload_word": WORD, "reads_data_valid": 1,
        "reads_data": 8 * CHIP.array.depth * CHIP.read_vectors,
        "writes_valid": 1, "writes_payload_address_bank": BANK,
        "writes_payload_address_word": WORD,
    }
    RULES = {
        "after_stores": "a job starts after the last store of all jobs before it",
        "after_loads": "a job starts when as many loads are complete as its field says, or more",
        "after_jobs": "a load starts when as many jobs have ended as its field says, or more",
        "one_load": "a load that was offered stays until it is taken",
        "reads_inside": "all vectors of a descriptor lie within the limits",
        "log_inside": "all entries of the log lie within the limits",
    }
    COVERS = {
        "job_after_load": "a job starts that waits for a load",
        "load_after_job": "a load starts that waits for a job",
        "second_job": "a job starts after another one",
        "log": "the second entry of the log is written",
    }

    def elaborate(self, platform):
        m = Module()
        self.stable_limits(m)
        self.answered(m, 1)
        self.job_order(m)
        self.list_order(m)
        return m

    def job_order(self, m):
        """The starts and ends of jobs."""
        running = Signal()
        m.d.sync += running.eq(self.job_start | running & ~self.job_done)
        self.assume(m, ~self.job_done | running)
        self.check(m, "after_stores", ~self.job_start | ~running)

    def list_order(self, m):
        """What jobs and loads wait for, and the log."""
        loading, begun, entries = Signal(), Signal(), Signal(2)
        jobs, loads = Signal(COUNT_BITS), Signal(COUNT_BITS)
        accepted = self.load_request_valid & self.load_request_ready
        m.d.sync += [
            loading.eq(accepted | loading & ~self.load_done),
            jobs.eq(jobs + (self.job_done & ~jobs.all())),
            loads.eq(loads + (self.load_done & ~loads.all())),
            begun.eq(begun | self.begin),
            entries.eq(entries + (self.writes_valid & ~entries.all())),
        ]
        self.assume(m, ~self.load_done | loading)
        self.assume(m, ~self.load_request_ready | ~loading | self.load_done)
        self.assume(m, ~(self.begin & begun))
        if self.config.banks < 1 << len(self.list_bank):
            banks = self.list_bank, self.log_bank
            self.assume(m, Cat(bank < self.config.banks for bank in banks).all())
        # Words 1 and 2 of a descriptor have the counts that it waits for, and adds in a turn.
        words = [self.reads_data.word_select(n, 32) for n in (1, 2)]
        self.assume(m, ~self.reads_data_valid | ~Cat(
            word[low + COUNT_BITS : low + 16] for word in words for low in (0, 16)
        ).any())
        self.check(m, "after_loads", ~self.job_start | (loads >= self.job_fields_loads))
        wanted = self.load_request_payload_jobs
        self.check(m, "after_jobs", ~self.load_request_valid | (jobs >= wanted))
        self.check(m, "one_load", self.stable(
            m, self.load_request_valid, self.load_request_ready, wanted
        ))
        self.check(m, "reads_inside", ~self.reads_request_valid | self.inside(
            self.reads_request_payload_bank, self.reads_request_payload_word, CHIP.read_vectors
        ))
        self.check(m, "log_inside", ~self.writes_valid | self.inside(
            self.writes_payload_address_bank, self.writes_payload_address_word, 1
        ))
        self.cover(m, "job_after_load", self.job_start & self.job_fields_loads.any())
        self.cover(m, "load_after_job", accepted & self.load_request_payload_jobs.any())
        self.cover(m, "second_job", self.job_start & jobs.any())
        self.cover(m, "log", self.writes_valid & (jobs == 2))


class EarlyListRules(ListRules):
    """The same for jobs that start early.

    It assumes that a job is ending before it ends, and not in the first SHORTEST cycles.
    """

    SHORTEST = 4  # a job takes far longer, since its results pass the scalers

    config = EARLY_CHIP
    PINS = ListRules.PINS | {
        "job_ending": 1, "output_job_start": 1,
        **dict.fromkeys(
            ("list_bank", "log_bank", "reads_request_payload_bank", "writes_payload_address_bank"),
            BANK - 1,
        ),
    }
    RULES = ListRules.RULES | {
        "after_stores": "the output of a job starts after the last store of all jobs before it",
        "after_steps": "a job starts when the job before is ending, or later",
        "own_output": "the output of a job starts once, after the job",
    }
    COVERS = ListRules.COVERS | {
        "early": "a job starts before the job before has ended",
    }

    def job_order(self, m):
        steps, waiting, storing, ending = Signal(), Signal(), Signal(), Signal()
        young = Signal(self.SHORTEST)
        m.d.sync += [
            steps.eq(self.job_start | steps & ~self.job_ending),
            waiting.eq(self.job_start | waiting & ~self.output_job_start),
            storing.eq(self.output_job_start | storing & ~self.job_done),
            ending.eq(self.job_ending | ending & ~self.job_done),
            young.eq(Cat(self.output_job_start, young)),
        ]
        self.assume(m, ~self.job_ending | storing & ~ending & ~young.any())
        self.assume(m, ~self.job_done | ending)
        self.check(m, "after_stores", ~self.output_job_start | ~storing)
        self.check(m, "after_steps", ~self.job_start | ~steps)
        self.check(m, "own_output", ~self.output_job_start | waiting)
        self.cover(m, "early", self.job_start & storing)


class EarlyStartRules(ListRules):
    """The same with the option ``early``.

    It assumes that a job stores its last result long after the start of its output. A job without
    steps has no ``job_ending``.
    """

    SHORTEST = 4

    config = EARLY_START
    PINS = ListRules.PINS | {
        "job_ending": 1, "output_job_start": 1, "job_fields_early": 1, "follows": 1,
    }
    RULES = ListRules.RULES | {
        "after_stores": "the output of a job starts after the last store of all jobs before it",
        "after_steps": "a job starts when the steps of the job before have ended",
        "own_output": "the output of a job starts once, after the job",
        "one_waits": "a job starts after the start of the output of the job before",
        "flag": "a job without the flag starts after the last store of all jobs before it",
        "follows": "while the job before stores, the gate of panels knows it",
    }
    COVERS = ListRules.COVERS | {
        "early": "a job starts before the job before has ended",
    }

    def job_order(self, m):
        steps, waiting, storing = Signal(), Signal(), Signal()
        young = Signal(self.SHORTEST)
        m.d.sync += [
            steps.eq(self.job_start | steps & ~self.job_ending & ~(self.job_done & ~waiting)),
            waiting.eq(self.job_start | waiting & ~self.output_job_start),
            storing.eq(self.output_job_start | storing & ~self.job_done),
            young.eq(Cat(self.output_job_start, young)),
        ]
        self.assume(m, ~self.job_ending | steps)
        self.assume(m, ~self.job_done | storing & ~young.any())
        self.check(m, "after_stores", ~self.output_job_start | ~storing)
        self.check(m, "after_steps", ~self.job_start | ~steps)
        self.check(m, "own_output", ~self.output_job_start | waiting)
        self.check(m, "one_waits", ~self.job_start | ~waiting)
        self.check(m, "flag", ~self.job_start | self.job_fields_early | ~storing)
        self.check(m, "follows", ~(waiting & storing) | self.follows)
        self.cover(m, "early", self.job_start & storing)


class LoaderRules(_LimitRules):
    """Reads within the limits, and writes of a load before its end. It assumes short loads."""

    config = LOADER_CHIP

    PINS = {
        "window_base": WORD, "window_limit": WORD, "load_request_valid": 1, "load_request_ready": 1,
        "load_request_payload_diagonal": 1, "load_request_payload_fill": 1,
        "load_request_payload_packed": 1,
        "load_request_payload_target": 8, "load_request_payload_source_bank": BANK,
        "load_request_payload_words": 16,
        "reads_request_valid": 1, "reads_request_ready": 1, "reads_request_payload_bank": BANK,
        "reads_request_payload_word": WORD, "reads_data_valid": 1,
        "b_enable": 2, "lines_enable": 1, "table_enable": 1, "load_done": 1,
    }
    RULES = {
        "inside": "all vectors that a load uses lie within the limits",
        "done_last": "a load writes nothing after its end",
        "done_with_write": "a load ends with a write",
        "fill": "a fill reads nothing",
    }
    COVERS = {
        "whole": "a load of whole words ends", "diagonal": "a load of diagonal words ends",
        "filled": "a fill ends", "table": "a load of an ADD table ends",
        "packed": "a load of two words of int4 ends",
    }

    def elaborate(self, platform):
        m = Module()
        loading, diagonal, table, fill = Signal(), Signal(), Signal(), Signal()
        single = Signal()  # a read has one vector that the load uses
        packed, two_words = Signal(), Signal()
        accepted = self.load_request_valid & self.load_request_ready
        target = self.load_request_payload_target
        new_diagonal = self.load_request_payload_diagonal & (target == LoadTarget.B)
        single_table = (target == LoadTarget.ADD_TABLE) & (LOADER_CHIP.add_table_vectors == 1)
        new_packed, words = self.load_request_payload_packed, self.load_request_payload_words
        with m.If(accepted):
            m.d.sync += [
                loading.eq(1), fill.eq(self.load_request_payload_fill), diagonal.eq(new_diagonal),
                table.eq(target == LoadTarget.ADD_TABLE), single.eq(new_diagonal | single_table),
                packed.eq(new_packed), two_words.eq(words == 2),
            ]
        with m.Elif(self.load_done):
            m.d.sync += loading.eq(0)
        self.stable_limits(m)
        self.answered(m, 3)
        self.assume(m, self.load_request_payload_source_bank < CHIP.banks)
        self.assume(m, words.any() & (words <= WORDS))
        # The list reader refuses others.
        self.assume(m, ~new_packed | (
            (target == LoadTarget.B) & ~new_diagonal & ~self.load_request_payload_fill
        ))
        self.assume(m, target <= max(LoadTarget))  # the list reader refuses others
        one, all_ = (
            self.inside(self.reads_request_payload_bank, self.reads_request_payload_word, vectors)
            for vectors in (1, LOADER_CHIP.read_vectors)
        )
        write = (self.b_enable | self.lines_enable | self.table_enable).any()
        self.check(m, "inside", ~self.reads_request_valid | all_ | single & one)
        self.check(m, "done_last", ~write | loading)
        self.check(m, "done_with_write", ~self.load_done | write)
        self.check(m, "fill", ~self.reads_request_valid | ~fill)
        end = self.load_done & loading
        self.cover(m, "whole", end & ~diagonal & ~fill)
        self.cover(m, "diagonal", end & diagonal & ~fill)
        self.cover(m, "filled", end & fill)
        self.cover(m, "packed", end & packed & two_words)
        self.cover(m, "table", end & table & ~fill)
        return m


class _NarrowExecution(ListExecution):
    """A `ListExecution` whose counts of jobs and loads have few bits."""

    def __init__(self, config):
        with self._narrow():
            super().__init__(config)

    def elaborate(self, platform):
        with self._narrow():
            return Fragment.get(super().elaborate(platform), platform)

    def _narrow(self):
        return patch.object(ReaderHead, "COUNT_BITS", COUNT_BITS)


def list_bench(kind: type = ListRules):
    """The execution of a list, without the memory, the jobs and the loads."""
    rules = kind()
    return FormalBench(_NarrowExecution(rules.config), {"": rules})


def loader_bench():
    """The loader, without the memory and the buffers."""
    return FormalBench(ListLoader(LOADER_CHIP), {"": LoaderRules()})
