"""A transport to a network core: it executes matrix products as lists."""

import dataclasses

from weft.commands import JobFlag, Region
from weft.config import Config
from weft.host.emulated import EmulatedTransport
from weft.host.golden_core import IntegerCore
from weft.host.list_products import ListProducts
from weft.network_core.config import NetworkCoreConfig

__all__ = ["ListTransport", "product_config"]

_WORDS = 1 << 16  # of the emulated buffers, which are in this process


def product_config(config: NetworkCoreConfig) -> Config:
    """Return the Config of the product core that a network core stands for."""
    return dataclasses.replace(config.array, a_words=_WORDS, b_words=_WORDS)


class ListTransport(EmulatedTransport):
    """A `Transport` to a network core: ``Accelerator(ListTransport(NetworkDriver(port)))``.

    This process emulates the command stream and the operand buffers of a product core.
    The network core computes the products, as `ListProducts` describes. The host adds partial
    sums, and converts those to results.

    The counter ``busy`` has the cycles of all lists, as the core has counted them; of a model that
    does not count, the predicted ones, which are equal. ``active`` has the array steps, ``starved``
    all other cycles. The words of the streams are the emulated ones.

    Parameters
    ----------
    runner : NetworkDriver
        Or a model, as for `ListProducts`.
    timeout : float
        Maximum seconds of a list.

    Attributes
    ----------
    products : ListProducts
    """

    def __init__(self, runner, *, timeout: float = 60.0):
        self.products = ListProducts(runner, timeout=timeout)
        super().__init__(_ListCore(product_config(runner.config), self.products))

    def restart(self, timeout: float) -> None:
        """Discard the commands that were not executed."""
        self._waiting.clear()

    def close(self) -> None:
        super().close()
        self.products.close()

    def _count_cycles(self):
        counters = self.products.counters
        cycles, active = counters.cycles(), counters.steps
        self._counters |= {"busy": cycles, "active": active, "starved": cycles - active}


class _ListCore(IntegerCore):
    """The buffers of the emulated core; lists compute its sums and results."""

    def __init__(self, config: Config, products: ListProducts):
        super().__init__(config)
        self._products = products

    def sums(self, job, a, b, kept):
        total = self._products.sums(a, b)
        return total if kept is None else total + kept

    def run(self, job):
        partial = job.flags & (JobFlag.ACCUMULATE | JobFlag.KEEP)
        whole = JobFlag.REQUANTIZE in job.flags and not partial
        if not (whole and self._products.is_whole(job.m, job.k, job.n)):
            return super().run(job)
        a = self._operand(Region.A, job.m, job.k, job.a_page, job.a_pitch)
        b = self._operand(Region.B, job.n, job.k, job.b_page, job.b_pitch)
        return self._layout(self._products.results(a, b, self.entries(job)))
