"""What the commands say of a network that does not fit a network core."""

import re
import time
from argparse import Namespace

import numpy as np
import pytest
from network_core_networks import NetworkBuilder
from network_cores import network_core_config

from weft.cli import progress
from weft.cli.network_inputs import compile_for
from weft.models.errors import UnfitError
from weft.models.loading import NeuralNetwork
from weft.models.target import board_cores

WAYS = (
    r"\. What runs it: a product core \(no --for, no table \[network_core\]\), which gets each"
    r" product over the link, as this core does with 'weft run'"
)


@pytest.fixture
def network():
    builder = NetworkBuilder(np.random.default_rng(1), (1, 9, 9, 8))
    builder.convolution(0, 8)
    return NeuralNetwork(builder.graph(), b"")


def test_names_the_smallest_core_that_the_network_fits(network):
    smallest = board_cores()[0]
    config = network_core_config(3, 4, 4, 2, words=64)
    message = (
        rf"net: the memory must have [\d,]+ bytes .* words of 4 bytes\. .*{WAYS}; the core"
        rf" {smallest.name}: the network needs [\d,]+ bytes of its"
        rf" {smallest.config.memory_bytes:,}$"
    )
    with pytest.raises(UnfitError, match=message):
        compile_for(Namespace(batch=None), network, config)


def test_no_board_may_have_more_memory(network):
    config = network_core_config(3, 2, 4, 2, words=65536, b_words=8, read_vectors=2)
    rule = r"\[network_core\] b_words must be at least 36"
    text = rf"a job needs 36 words of B, and the buffer has 8: {rule}{WAYS}$"
    with pytest.raises(UnfitError, match=text):
        compile_for(Namespace(batch=None), network, config)


def test_says_how_much_of_a_compilation_is_done(network, capsys, monkeypatch):
    monkeypatch.setattr(progress, "PATIENCE", 0.01)
    monkeypatch.setattr(progress, "INTERVAL", 0.01)

    def compile_slowly(graph, target, *, watch, **_):
        watch(0.25)
        time.sleep(0.2)

    monkeypatch.setattr(NeuralNetwork, "compile", compile_slowly)
    compile_for(Namespace(batch=None), network, board_cores()[0])
    lines = capsys.readouterr().err.splitlines()
    assert re.fullmatch(
        rf"   \.\.\.  compiling net for {board_cores()[0].name}: 25%, about \d s to go", lines[-1]
    )
