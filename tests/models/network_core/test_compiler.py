"""The compiler for network cores: it checks the size of the memory before it looks for a schedule.
"""

import numpy as np
import pytest
from network_core_networks import NetworkBuilder
from network_cores import network_core_config

from weft.models.errors import UnfitError
from weft.models.network_core import compiler
from weft.models.network_core.compiler import compile_network_core
from weft.models.target import target_of


@pytest.fixture
def network():
    builder = NetworkBuilder(np.random.default_rng(1), (1, 9, 9, 8))
    builder.convolution(builder.convolution(0, 8), 8)
    return builder.graph()


def test_a_network_that_does_not_fit_gets_no_long_schedule(network, monkeypatch):
    asked = []
    schedule = compiler.schedule_buffers
    monkeypatch.setattr(
        compiler, "schedule_buffers",
        lambda *given, fewest=False, **options: (
            asked.append(fewest) or schedule(*given, fewest=fewest, **options)
        ),
    )
    small, large = (target_of(network_core_config(3, 4, 4, 2, words=words)) for words in (64, 4096))
    with pytest.raises(UnfitError, match="^net: the memory must have "):
        compile_network_core(network, small)
    assert set(asked) == {True}
    asked.clear()
    compile_network_core(network, large)
    assert False in asked
