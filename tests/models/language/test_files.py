"""Files of language models: what they give, what is refused by name, and damaged ones."""

import dataclasses
import json
import random
import struct

import numpy as np
import pytest
from language_models import SMALL, pieces, random_weights, write_gguf, write_hugging_face

import weft
from tools.llama2c_writer import model_file, tokenizer_file
from weft.golden.language import FloatModel
from weft.models.errors import ModelError
from weft.models.language.model import LanguageModel


@pytest.fixture(scope="module", params=[True, False], ids=["tied", "untied"])
def weights(request):
    return random_weights(SMALL, seed=3, tied=request.param)


@pytest.fixture(scope="module")
def tied():
    return random_weights(SMALL, seed=3)


def write_llama2c(folder, weights):
    (folder / "tok300.bin").write_bytes(tokenizer_file(pieces()))
    path = folder / "small.bin"
    path.write_bytes(model_file(weights))
    return path


def equal(found, weights, tolerance=0.0):
    for field in dataclasses.fields(weights):
        a, b = getattr(found, field.name), getattr(weights, field.name)
        if field.name == "shape":  # GGUF has epsilon in float32
            assert np.float32(a.epsilon) == np.float32(b.epsilon)
            assert dataclasses.replace(a, epsilon=b.epsilon) == b
        elif b is None:
            assert a is None
        else:
            assert a.dtype == np.float32
            np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance * np.abs(b).max())


# llama2.c

def test_llama2c_gives_its_weights(tmp_path, weights):
    model = weft.load(write_llama2c(tmp_path, weights))
    equal(model.weights, weights)
    assert (model.name, model.source, model.file_positions) == ("small", "llama2.c", 48)
    assert (model.weights.classifier is model.weights.embedding) == (
        weights.classifier is weights.embedding
    )
    assert model.tokenizer.pieces == pieces().pieces


def test_positions_are_limited_to_what_fits(tmp_path, tied):
    many = dataclasses.replace(tied, shape=dataclasses.replace(SMALL, positions=2048))
    model = weft.load(write_llama2c(tmp_path, many))
    assert (model.weights.shape.positions, model.file_positions) == (512, 2048)


def test_the_tokenizer_is_named_or_beside_the_model(tmp_path, tied):
    path = write_llama2c(tmp_path, tied)
    other = (tmp_path / "tok300.bin").rename(tmp_path / "mine")
    with pytest.raises(ModelError, match="tok300.bin or tokenizer.bin in its folder, or name the"):
        weft.load(path)
    assert weft.load(path, tokenizer=other).tokenizer.bos == 1
    other.rename(tmp_path / "tokenizer.bin")
    assert weft.load(path).tokenizer.stops == (1, 2)


def patched(data, place, value):
    return data[:4 * place] + struct.pack("<i", value) + data[4 * place + 4:]


@pytest.mark.parametrize("change, text", [
    (lambda d: d[:20], r"must have a head of 28 bytes, not 20 bytes"),
    (lambda d: d[:-1], "must have 114,332 bytes, as its head says, not 114,331"),
    (lambda d: d + b"\0", "the file is damaged"),
    (lambda d: struct.pack("<2i", 0x616B3432, 2) + d, "version must be 0, .* not 2: llama2.c's"),
    (lambda d: patched(d, 0, 0), "dim must be 1 or more, not 0"),
    (lambda d: patched(d, 0, 30), "dim must be a multiple of 8, not 30"),
    (lambda d: patched(d, 4, 3), "heads must be a multiple of 3, not 4"),
    (lambda d: patched(d, 0, 1 << 30), "dim must be in 1..65,536, so that sums fit, not 1,073,"),
    (lambda d: patched(d, 2, 1 << 30), "layers must be in 1..1024, not 1,073,741,824"),
    (lambda d: patched(d, 5, 1 << 30), "vocab must be in 1..65,536, so that sums fit"),
    (lambda d: patched(d, 5, -(1 << 31)), "vocab must be in 1..65,536, so that sums fit"),
    (lambda d: patched(d, 6, 1 << 30), "must have .* bytes, as its head says"),
    (lambda d: d[:28] + struct.pack("<f", float("nan")) + d[32:], "embedding must be numbers"),
])
def test_a_wrong_llama2c_file_is_refused(tmp_path, tied, change, text):
    path = write_llama2c(tmp_path, tied)
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(ModelError, match=text):
        weft.load(path)


@pytest.mark.parametrize("change", [
    lambda d: d[:-1], lambda d: d + b"\0", lambda d: d[:8] + b"\xff" * 4 + d[12:], lambda d: b"",
    lambda d: d[:8] + struct.pack("<i", 1 << 30) + d[12:],
])
def test_a_wrong_tokenizer_file_is_refused(tmp_path, tied, change):
    path = write_llama2c(tmp_path, tied)
    tokenizer = tmp_path / "tok300.bin"
    tokenizer.write_bytes(change(tokenizer.read_bytes()))
    with pytest.raises(ModelError, match="tok300.bin must have 300 pieces in"):
        weft.load(path)


# GGUF

@pytest.mark.parametrize("kind, tolerance", [("F32", 0.0), ("F16", 5e-4), ("Q8_0", 5e-3)])
def test_gguf_gives_its_weights(tmp_path, weights, kind, tolerance):
    pytest.importorskip("gguf")
    path = tmp_path / "small.gguf"
    write_gguf(path, weights, kind)
    model = weft.load(path)
    equal(model.weights, weights, tolerance)
    assert (model.source, model.tokenizer.bos, model.tokenizer.stops) == ("GGUF", 1, (2,))
    assert model.tokenizer.encode("the ants") == pieces().encode("the ants")


@pytest.mark.parametrize("kind, changes, text", [
    ("F32", {"architecture": "qwen2"}, "general.architecture must be llama, not 'qwen2'"),
    ("F32", {"rope_scaling": "yarn"}, "llama.rope.scaling.type must be none, not 'yarn'"),
    ("F32", {"tokenizer": "gpt2"}, "tokenizer.ggml.model must be llama, not 'gpt2'"),
    ("Q4_0", {}, "token_embd.weight must be of type F32, F16, Q8_0, not Q4_0"),
    ("F32", {"kv_heads": 4}, r"blk.0.attn_k.weight must be \[32, 32\], not \[16, 32\]"),
    ("F32", {"kv_heads": 3}, "heads must be a multiple of 3, not 4"),
    ("F32", {"add_bos": False}, "tokenizer.ggml.add_bos_token must be True, not False"),
    ("F32", {"more": "blk.1.attn_q.bias"}, "and no other one: blk.1.attn_q.bias"),
])
def test_another_gguf_is_refused_by_name(tmp_path, tied, kind, changes, text):
    pytest.importorskip("gguf")
    path = tmp_path / "small.gguf"
    write_gguf(path, tied, kind, **changes)
    with pytest.raises(ModelError, match=text):
        weft.load(path)


def test_an_array_of_any_length_ends_at_once(tmp_path, tied):
    """The package would read elements behind the end of the file, as many as it tells."""
    pytest.importorskip("gguf")
    path = tmp_path / "small.gguf"
    write_gguf(path, tied, "F32")
    data = path.read_bytes()
    place = data.index(b"tokenizer.ggml.scores") + len(b"tokenizer.ggml.scores") + 8
    assert data[place:place + 8] == struct.pack("<Q", 300)
    path.write_bytes(data[:place] + struct.pack("<Q", 1 << 40) + data[place + 8:])
    with pytest.raises(ModelError, match="the file is damaged: a field ends behind it"):
        weft.load(path)


def test_a_device_is_refused():
    """/dev/zero has no end."""
    with pytest.raises(ModelError, match="^network must be a file: /dev/zero is a device$"):
        weft.load("/dev/zero")


def test_the_contents_name_the_kind(tmp_path, tied):
    pytest.importorskip("gguf")
    write_gguf(tmp_path / "small.bin", tied, "F32")
    assert weft.load(tmp_path / "small.bin").source == "GGUF"
    other = LanguageModel("a", "llama2.c", tied, pieces(), 48).compile()
    other.save(tmp_path / "program.bin")
    assert weft.load(tmp_path / "program.bin").name == "a"


@pytest.mark.parametrize("change, text", [
    (lambda d: d[:20], "^small.gguf: a GGUF file must have 24 bytes or more, not 20"),
    (lambda d: b"GGML" + d[4:], "^small.gguf: the first bytes must be GGUF, not b'GGML'"),
    (lambda d: patched(d, 1, 1), "the version must be 2 or 3, little-endian, not 1"),
    (lambda d: patched(d, 4, 1 << 30), "a field ends behind it"),
])
def test_a_wrong_head_of_gguf_is_refused(tmp_path, tied, change, text):
    pytest.importorskip("gguf")
    path = tmp_path / "small.gguf"
    write_gguf(path, tied, "F32")
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(ModelError, match=text):
        weft.load(path)


# Hugging Face

@pytest.mark.parametrize("dtype, tolerance", [
    ("float32", 0.0), ("float16", 5e-4), ("bfloat16", 4e-3),
])
def test_hugging_face_gives_its_weights(tmp_path, weights, dtype, tolerance):
    pytest.importorskip("safetensors")
    pytest.importorskip("tokenizers")
    folder = tmp_path / "small"
    write_hugging_face(folder, weights, dtype)
    model = weft.load(folder)
    equal(model.weights, weights, tolerance)
    assert (model.name, model.source) == ("small", "Hugging Face")
    assert model.tokenizer.encode("the cat") == [1, 3, 4]


def test_the_program_of_a_folder_has_its_tokenizer(tmp_path, weights):
    """A tokenizer.json may have lines, and characters that a terminal does not show."""
    tokenizers = pytest.importorskip("tokenizers")
    folder = tmp_path / "small"
    write_hugging_face(folder, weights)
    words = {"<unk>": 0, "<s>": 1, "</s>": 2, "the": 3, "\u202ecat": 4}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="<unk>"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    tokenizer.save(str(folder / "tokenizer.json"), pretty=True)
    assert (folder / "tokenizer.json").read_text().count("\n") > 5
    weft.load(folder).compile().save(tmp_path / "small.weft")
    found = weft.load(tmp_path / "small.weft").tokenizer
    assert found.encode("the \u202ecat") == [1, 3, 4]


@pytest.mark.parametrize("changes, text", [
    ({"model_type": "mixtral"}, "model_type must be llama, not 'mixtral'"),
    ({"hidden_act": "gelu"}, "hidden_act must be 'silu', not 'gelu'"),
    ({"rope_scaling": {"type": "linear"}}, "rope_scaling must be None, not"),
    ({"rope_parameters": {"rope_type": "yarn"}}, "rope_parameters must be of type default, not"),
    ({"attention_bias": True}, "attention_bias must be False, not True"),
    ({"quantization_config": {"bits": 4}}, "quantization_config must be None, not"),
    ({"hidden_size": "64"}, "hidden_size must be an integer, not '64'"),
    ({"num_hidden_layers": 10**9}, "layers must be in 1..1024, not 1,000,000,000"),
    ({"num_hidden_layers": 3}, "must have the tensor model.layers.2"),
    ({"head_dim": 16}, "head_dim must be hidden_size / num_attention_heads, 8, not 16"),
    ({"vocab_size": 301}, r"embed_tokens.weight must be \[301, 32\], not \[300, 32\]"),
    ({"rms_norm_eps": 0}, "epsilon must be a number above 0, not 0.0"),
    # Both have no angle in float32.
    ({"rope_theta": 1e-300}, r"small: rope_theta must be in 1..1e\+30, not 1e-300"),
    ({"rope_theta": 1e300}, r"small: rope_theta must be in 1..1e\+30, not 1e\+300"),
    ({"max_position_embeddings": 1}, "small: positions must be 2 or more, so that a token can"),
    ({"bos_token_id": None}, "bos_token_id and eos_token_id must be numbers, not None"),
    ({"eos_token_id": 400}, "must be in 0..299, not 400"),
    ({"tie_word_embeddings": False}, "must have the tensor lm_head.weight"),
    ({"tie_word_embeddings": "no"}, "tie_word_embeddings must be true or false, not 'no'"),
    ({"partial_rotary_factor": 0.5}, "partial_rotary_factor must be 1.0, not 0.5"),
    ({"num_hidden_layers": 1}, "and no other one: model.layers.1.input_layernorm.weight"),
])
def test_another_folder_is_refused_by_name(tmp_path, tied, changes, text):
    pytest.importorskip("safetensors")
    pytest.importorskip("tokenizers")
    folder = tmp_path / "small"
    write_hugging_face(folder, tied, **changes)
    with pytest.raises(ModelError, match=text):
        weft.load(folder)


def test_a_tensor_that_no_model_of_this_kind_has(tmp_path, tied):
    """Old versions of the package write the angles of the rotation, too; they are computed."""
    pytest.importorskip("tokenizers")
    safetensors = pytest.importorskip("safetensors.numpy")
    folder = tmp_path / "small"
    write_hugging_face(folder, tied)
    file = folder / "model.safetensors"
    tensors = safetensors.load_file(file)
    tensors["model.layers.0.self_attn.rotary_emb.inv_freq"] = np.ones(4, np.float32)
    safetensors.save_file(tensors, file)
    equal(weft.load(folder).weights, tied, 0.0)
    tensors["model.layers.1.self_attn.q_norm.weight"] = np.ones(8, np.float32)
    safetensors.save_file(tensors, file)
    with pytest.raises(ModelError, match="no other one: model.layers.1.self_attn.q_norm.weight"):
        weft.load(folder)


def test_sharded_weights_are_found_by_their_index(tmp_path, tied):
    pytest.importorskip("tokenizers")
    safetensors = pytest.importorskip("safetensors.numpy")
    folder = tmp_path / "small"
    write_hugging_face(folder, tied)
    whole = safetensors.load_file(folder / "model.safetensors")
    names = sorted(whole)
    parts = {"a.safetensors": names[::2], "b.safetensors": names[1::2]}
    for file, part in parts.items():
        safetensors.save_file({name: whole[name] for name in part}, folder / file)
    (folder / "model.safetensors").unlink()
    index = {name: file for file, part in parts.items() for name in part}
    listed = folder / "model.safetensors.index.json"
    listed.write_text(json.dumps({"weight_map": index}))
    equal(weft.load(folder).weights, tied)
    listed.write_text(json.dumps({"weight_map": {names[0]: "../a.safetensors"}}))
    with pytest.raises(ModelError, match="files of model.safetensors.index.json must be in its"):
        weft.load(folder)


def test_three_files_of_a_model_give_equal_logits(tmp_path, tied):
    for package in ("gguf", "safetensors", "tokenizers"):
        pytest.importorskip(package)
    write_gguf(tmp_path / "small.gguf", tied, "F32")
    write_hugging_face(tmp_path / "small", tied)
    models = [
        weft.load(place)
        for place in (write_llama2c(tmp_path, tied), tmp_path / "small.gguf", tmp_path / "small")
    ]
    tokens = np.arange(3, 43)[None]
    first, *others = (FloatModel(model.weights).step(tokens) for model in models)
    for other in others:
        np.testing.assert_array_equal(first, other)


# All of them

@pytest.mark.parametrize("kind", ["llama2.c", "tokenizer", "gguf", "safetensors", "config", "json"])
def test_damaged_files_end_in_an_error_or_a_model(tmp_path, tied, kind):
    """Truncated files, flipped bytes, numbers of any size: a model or a ModelError."""
    for package in ("gguf", "safetensors", "tokenizers"):
        pytest.importorskip(package)
    folder = tmp_path / "small"
    source = {
        "llama2.c": tmp_path / "small.bin", "tokenizer": tmp_path / "tok300.bin",
        "gguf": tmp_path / "small.gguf", "safetensors": folder / "model.safetensors",
        "config": folder / "config.json", "json": folder / "tokenizer.json",
    }[kind]
    if kind == "gguf":
        write_gguf(source, tied, "F32")
    elif source.parent == folder:
        write_hugging_face(folder, tied)
    else:
        write_llama2c(tmp_path, tied)
    start = {"tokenizer": tmp_path / "small.bin", "gguf": source, "llama2.c": source}.get(
        kind, folder
    )
    whole, rng = source.read_bytes(), random.Random(kind)
    refused = 0
    for number in range(60):
        data = bytearray(whole)
        # Heads are short, and weights are long: half of the damage is in the head.
        place = rng.randrange(min(len(data), 4000 if number % 2 else len(data)))
        if number % 3 == 0:
            del data[place:]
        elif number % 3 == 1:
            data[place] ^= 1 << rng.randrange(8)
        else:
            data[place:place + 8] = rng.choice([b"\xff" * 8, b"\0" * 8, b"\xff" * 7 + b"\x7f"])
        source.write_bytes(data)
        try:
            weft.load(start)
        except ModelError as error:
            assert "\n" not in str(error) and len(str(error)) < 400
            refused += 1
    assert refused >= 15
