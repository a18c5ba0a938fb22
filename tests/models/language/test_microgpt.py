"""Files of a microGPT, and programs of it."""

import dataclasses
import zipfile

import numpy as np
import pytest
from language_models import MICROGPT, random_microgpt

import weft
from weft.models.errors import ModelError
from weft.models.language.microgpt import write

CHARS = "abcdefghijklmnopqrstuvwxyz"


@pytest.fixture(scope="module")
def weights():
    return random_microgpt(dataclasses.replace(MICROGPT, layers=2), 4)


def test_a_file_gives_its_weights(tmp_path, weights):
    write(tmp_path / "small.npz", weights, CHARS)
    model = weft.load(tmp_path / "small.npz")
    assert (model.name, model.source, model.file_positions) == ("small", "microGPT", 16)
    for field in dataclasses.fields(weights):
        expected, found = getattr(weights, field.name), getattr(model.weights, field.name)
        if expected is None or field.name == "shape":
            assert found == expected
        else:
            np.testing.assert_array_equal(found, expected)
    tokenizer = model.tokenizer
    assert tokenizer.encode("cab") == [26, 2, 0, 1] and tokenizer.stops == (26,)
    text = tokenizer.stream()
    assert "".join(map(text.push, [26, 2, 0, 1, 26, 3])) == "cabd"
    with pytest.raises(ModelError, match="the tokenizer must have a token for 'A'"):
        tokenizer.encode("A")


def _arrays(weights, tmp_path):
    write(tmp_path / "whole.npz", weights, CHARS)
    with np.load(tmp_path / "whole.npz") as file:
        return {key: file[key] for key in file.files}


@pytest.mark.parametrize("change, text", [
    ({"wpe": None}, "wrong.npz must have the array wpe: it is no microGPT"),
    ({"lm_head": None}, r"wrong.npz: lm_head must be floating-point numbers \[27, 16\]"),
    ({"layer1.attn_wo": np.zeros((16, 15))},
     r"layer1.attn_wo must be floating-point numbers \[16, 16\]"),
    ({"layer0.mlp_fc2": np.zeros((16, 64), int)}, "layer0.mlp_fc2 must be floating-point"),
    ({"wte": np.zeros(5)}, "wrong.npz: wte must have 2 dimensions"),
    ({"n_head": 3}, "wrong.npz: dim must be a multiple of 6, not 16"),
    ({"n_head": 0}, "wrong.npz: heads must be 1 or more, not 0"),
    ({"n_head": 2.5}, "wrong.npz: n_head must be a number"),
    ({"chars": "abc"}, "chars must have 26 different characters, one for each token but the last"),
    ({"chars": CHARS[:-1] + "a"}, "chars must have 26 different characters"),
    ({"layer0.bias": np.zeros(3)}, "wrong.npz must have no array layer0.bias"),
    ({"wte": np.full((27, 16), np.nan)}, "embedding must be numbers; the file is damaged"),
])
def test_wrong_files_are_refused_by_name(tmp_path, weights, change, text):
    arrays = _arrays(weights, tmp_path) | change
    np.savez(tmp_path / "wrong.npz", **{k: v for k, v in arrays.items() if v is not None})
    with pytest.raises(ModelError, match=text):
        weft.load(tmp_path / "wrong.npz")


def test_a_damaged_file_is_refused(tmp_path, weights):
    write(tmp_path / "whole.npz", weights, CHARS)
    data = (tmp_path / "whole.npz").read_bytes()
    (tmp_path / "half.npz").write_bytes(data[: len(data) // 2])
    with pytest.raises(ModelError, match="half.npz must be a whole .npz file of NumPy"):
        weft.load(tmp_path / "half.npz")
    np.savez(tmp_path / "objects.npz", wte=np.array([{}], object), allow_pickle=True)
    with pytest.raises(ModelError, match="objects.npz must be a whole .npz file of NumPy"):
        weft.load(tmp_path / "objects.npz")
    with zipfile.ZipFile(tmp_path / "other.npz", "w") as archive:
        archive.writestr("a b.npy", b"")
    with pytest.raises(ModelError, match="must have names of lower-case letters"):
        weft.load(tmp_path / "other.npz")


@pytest.fixture(scope="module")
def program(tmp_path_factory, weights):
    folder = tmp_path_factory.mktemp("microgpt")
    write(folder / "small.npz", weights, CHARS)
    return weft.load(folder / "small.npz").compile()


def test_a_program_is_saved_and_read(tmp_path, program):
    program.save(tmp_path / "small.weft")
    found = weft.load(tmp_path / "small.weft")
    how = {"temperature": 1.0, "seed": 3}
    text = "".join(program.open().generate("al", 12, **how))
    assert text and text == "".join(found.open().generate("al", 12, **how))


@pytest.mark.parametrize("change, text", [
    ({"position_embedding": None}, "the model must have a position_embedding: it is a microgpt"),
    ({"cos": np.zeros((16, 2), np.int16)}, "the model must have no cos: it is a microgpt"),
    ({"embedding_norm": -40}, "norm of the embedding: shift must be in 1..47, not -"),
])
def test_parts_of_another_architecture_are_refused(program, change, text):
    wrong = dataclasses.replace(program.weights, **change)
    with pytest.raises(ModelError, match=text):
        dataclasses.replace(program, weights=wrong).check()


def test_parts_of_a_layer_of_another_architecture_are_refused(program):
    first, *others = program.weights.layers
    layers = dataclasses.replace(first, gate_shift=3), *others
    wrong = dataclasses.replace(program.weights, layers=layers)
    with pytest.raises(ModelError, match="layer 0 must have no gate_shift: it is a microgpt"):
        dataclasses.replace(program, weights=wrong).check()
