"""The language model in float32 against llama2.c itself, compiled from its source."""

import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import weft
from tools.language_texts import prompts
from weft.golden.language import FloatModel

STEPS = 200  # of llama2.c: the positions of a prompt count


@pytest.fixture(scope="module")
def networks():
    for name, content in (
        ("WEFT_NETWORKS", "stories260K.bin and tok512.bin"), ("WEFT_LLAMA2C", "run.c of llama2.c"),
    ):
        if name not in os.environ:
            pytest.skip(f"{name} must name a folder with {content}")
    return Path(os.environ["WEFT_NETWORKS"])


@pytest.fixture(scope="module")
def llama2c(networks, tmp_path_factory):
    """The compiled program."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("llama2.c needs the C compiler cc")
    program = tmp_path_factory.mktemp("llama2c") / "run"
    source = Path(os.environ["WEFT_LLAMA2C"]) / "run.c"
    subprocess.run([compiler, "-O3", "-o", program, source, "-lm"], check=True, timeout=300)
    return program


@pytest.mark.slow
def test_greedy_texts_equal_llama2c(networks, llama2c):
    """25 prompts, from one of no words to one of 27, in 200 positions each."""
    model = weft.load(networks / "stories260K.bin")
    texts = ["", *prompts()[1:]]
    assert len(texts) == 25
    tokens = [model.tokenizer.encode(text) for text in texts]
    found = _greedy(FloatModel(model.weights), tokens)
    for text, row in zip(texts, found, strict=True):
        done = subprocess.run(
            [llama2c, networks / "stories260K.bin", "-z", networks / "tok512.bin", "-t", "0",
             "-n", str(STEPS), "-i", text],
            capture_output=True, check=True, timeout=300,
        )
        ends = [n for n, token in enumerate(row) if token in model.tokenizer.stops]
        stream = model.tokenizer.stream()
        ours = "".join([*map(stream.push, row[: ends[0] if ends else None]), stream.end()])
        assert ours == done.stdout.decode().removesuffix("\n"), text


def _greedy(model, prompts):
    """The tokens after each position, of all prompts side by side."""
    model.start(len(prompts))
    now, found = np.array([[prompt[0]] for prompt in prompts]), []
    for position in range(1, STEPS + 1):
        following = model.step(now)[:, -1].argmax(-1)
        for row, prompt in enumerate(prompts):
            if position < len(prompt):
                following[row] = prompt[position]
        found.append(following)
        now = following[:, None]
    return np.array(found).T.tolist()
