"""Networks whose maps are larger than the memory on the chip: the message names the maps."""

import re
from dataclasses import replace

import numpy as np
import pytest
from network_core_networks import NetworkBuilder
from network_cores import network_core_config
from rejects import rejects

from weft.models.errors import UnfitError
from weft.models.network_core.compiler import compile_network_core
from weft.models.target import target_of

# The core of examples/litex_soc: 80 KiB of maps, and weights in a program memory.
CHIP = network_core_config(4, 4, 4, 4, words=4096, b_words=1024, lines=128, program_words=1 << 18)
NO_BORDER = (0, 0, 0, 0)


def mobilenet_v2(size):
    """MobileNetV2 with a width of 0.35, two classes and random weights."""
    b = NetworkBuilder(np.random.default_rng(1), (1, size, size, 3))

    def border(stride):
        return (1, 1, 1, 1) if stride == 1 else (0, 1, 0, 1)

    def pointwise(x, channels):
        return b.convolution(x, channels, kernel=(1, 1), padding=NO_BORDER)

    def depthwise(x, stride):
        channels, step = b.tensors[x].shape[-1], (stride, stride)
        return b.convolution(x, 1, stride=step, padding=border(stride), groups=channels)

    x = b.convolution(0, 16, stride=(2, 2), padding=border(2))
    x = pointwise(depthwise(x, 1), 8)
    for channels, count, stride in (
        (8, 2, 2), (16, 3, 2), (24, 4, 2), (32, 3, 1), (56, 3, 2), (112, 1, 1),
    ):
        for n in range(count):
            wide = pointwise(x, 6 * b.tensors[x].shape[-1])
            y = pointwise(depthwise(wide, 1 if n else stride), channels)
            x = b.add(x, y) if n else y
    b.dense(b.mean(pointwise(x, 1280)), 2)
    return b.graph()


def expanding():
    """A map of 20 x 20 x 8 between smaller ones."""
    b = NetworkBuilder(np.random.default_rng(1), (1, 20, 20, 4))
    b.convolution(b.convolution(b.convolution(0, 4), 8), 4)
    return b.graph()


def test_names_the_layer_and_its_maps():
    config = replace(CHIP, words=64)
    with rejects(UnfitError, (
        "net: the memory must have 4,800 bytes (maps), and has 1,280: 5 banks of 64 words of 4"
        " bytes. 3,520 bytes are missing. Operator 1 (CONV_2D n1) needs the most maps: 20 x 20 x 8"
        " (3,200 bytes), 20 x 20 x 4 (1,600 bytes). A program memory has no maps: words must be at"
        " least 256; or the input must be smaller"
    )):
        compile_network_core(expanding(), target_of(config))


def test_a_program_memory_is_the_way_out_if_only_the_maps_fit():
    b = NetworkBuilder(np.random.default_rng(1), (1, 2, 2, 400))
    b.convolution(0, 40, kernel=(1, 1), padding=NO_BORDER)
    config = replace(CHIP, words=256, b_words=256, program_words=0)  # the weights do not stay
    with pytest.raises(UnfitError, match=(
        r"needs the most maps: .*\. Words must be at least 1,024; or the input must be smaller;"
        r" with program_words only the maps need this memory$"
    )):
        compile_network_core(b.graph(), target_of(config))
    compile_network_core(b.graph(), target_of(replace(config, program_words=1024)))
    compile_network_core(b.graph(), target_of(replace(config, words=1024)))
    with pytest.raises(UnfitError, match=r"or the input must be smaller$"):
        compile_network_core(b.graph(), target_of(replace(config, words=64)))


def test_names_the_layer_with_the_most_weights_and_the_program_memory_for_all():
    graph = expanding()
    with pytest.raises(UnfitError) as refused:
        compile_network_core(graph, target_of(replace(CHIP, program_words=16)))
    text = str(refused.value)
    needed, has, missing = (
        int(number.replace(",", "")) for number in re.match(
            r"net: the program memory must have ([\d,]+) bytes \(.*\), and has ([\d,]+): .*"
            r" ([\d,]+) bytes are missing\. Operator 1 \(CONV_2D n1\) has the most weights\."
            r" Program_words must be at least 64$", text
        ).groups()
    )
    assert missing == needed - has
    compile_network_core(graph, target_of(replace(CHIP, program_words=64)))
    with pytest.raises(UnfitError):
        compile_network_core(graph, target_of(replace(CHIP, program_words=32)))


def test_no_core_has_so_many_words():
    with pytest.raises(UnfitError, match=(
        r"words must be 131,072 with stripes, and no such core has so many; or the input must be"
        r" smaller$"
    )):
        compile_network_core(expanding(), target_of(CHIP), batch=600)


@pytest.mark.long
def test_mobilenet_v2_of_160_x_160():
    """384,608 bytes of weights need a program memory, and 384,000 bytes of maps a larger chip."""
    graph = mobilenet_v2(160)
    with rejects(UnfitError, (
        "net: without stripes of rows the memory must have 384,000 bytes (maps), and has 81,920: 5"
        " banks of 4,096 words"
        " of 4 bytes. 302,080 bytes are missing. Operator 4 (DEPTHWISE_CONV_2D n4) needs the most"
        " maps: 80 x 80 x 48 (307,200 bytes), 40 x 40 x 48 (76,800 bytes). A program memory has no"
        " maps: words must be at least 8,192 with stripes; or the input must be smaller"
    )):
        compile_network_core(graph, target_of(CHIP))
    program = compile_network_core(graph, target_of(replace(CHIP, words=1 << 13)))
    assert len(program.segments) == 1 and program.areas["maps"] <= 163_840
    program = compile_network_core(graph, target_of(replace(CHIP, words=1 << 15)))
    assert len(program.segments) == 1 and program.areas["maps"] == 384_000
    small = compile_network_core(mobilenet_v2(64), target_of(CHIP))
    assert len(small.segments) == 1 and small.areas["maps"] == 61_440
