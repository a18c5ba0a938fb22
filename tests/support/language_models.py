"""Small language models with random weights, and their files."""

import json
from pathlib import Path

import numpy as np

from weft.golden.language import Shape, Weights
from weft.models.language.tokenizer import PieceTokenizer

__all__ = [
    "MICROGPT", "SMALL", "pieces", "random_microgpt", "random_weights", "write_gguf",
    "write_hugging_face",
]

# The well-known microGPT: 4,192 weights.
MICROGPT = Shape(
    dim=16, layers=1, heads=4, kv_heads=4, hidden=64, vocab=27, positions=16,
    architecture="microgpt",
)
SMALL = Shape(dim=32, layers=2, heads=4, kv_heads=2, hidden=64, vocab=300, positions=48)


def random_weights(shape: Shape, seed: int, *, tied: bool = True) -> Weights:
    """Weights whose maps have values of the sizes of a trained model."""
    rng = np.random.default_rng(seed)

    def normal(*size):
        return (rng.standard_normal(size) / np.sqrt(size[-1])).astype(np.float32)

    def gains(*size):
        return rng.uniform(0.5, 1.5, size).astype(np.float32)

    n, dim, kv, hidden = shape.layers, shape.dim, shape.kv_dim, shape.hidden
    embedding = normal(shape.vocab, dim) * np.float32(4)
    return Weights(
        shape=shape, embedding=embedding, attention_gain=gains(n, dim), wq=normal(n, dim, dim),
        wk=normal(n, kv, dim), wv=normal(n, kv, dim), wo=normal(n, dim, dim),
        ffn_gain=gains(n, dim), w1=normal(n, hidden, dim), w2=normal(n, dim, hidden),
        w3=normal(n, hidden, dim), final_gain=gains(dim),
        classifier=embedding if tied else normal(shape.vocab, dim),
    )


def random_microgpt(shape: Shape = MICROGPT, seed: int = 1) -> Weights:
    """The same of a microGPT."""
    rng = np.random.default_rng(seed)

    def normal(*size, scale=1.0):
        return (rng.standard_normal(size) * scale / np.sqrt(size[-1])).astype(np.float32)

    n, dim, hidden = shape.layers, shape.dim, shape.hidden
    ones = np.ones((n, dim), np.float32)
    return Weights(
        shape=shape, embedding=normal(shape.vocab, dim), attention_gain=ones,
        wq=normal(n, dim, dim, scale=2), wk=normal(n, dim, dim), wv=normal(n, dim, dim),
        wo=normal(n, dim, dim), ffn_gain=ones, w1=normal(n, hidden, dim),
        w2=normal(n, dim, hidden), w3=None, final_gain=None,
        classifier=normal(shape.vocab, dim, scale=3),
        position_embedding=normal(shape.positions, dim),
    )


def pieces(vocab: int = SMALL.vocab) -> PieceTokenizer:
    """A tokenizer with all bytes and some words, in the order of llama2.c."""
    found = [b"<unk>", b"\n<s>\n", b"\n</s>\n", *(b"<0x%02X>" % byte for byte in range(256))]
    words = ["e", " ", "t", "h", "a", "n", "d", "o", "s", " t", "he", " the", "an", " a", " an",
             " and", "nd", "on", " s", "at", "ö", " the a", "w", "as", " w", " was", "..."]
    found += [word.encode() for word in words]
    found += [b"unused %d" % i for i in range(vocab - len(found))]
    scores = np.zeros(vocab, np.float32)
    scores[259:259 + len(words)] = -np.arange(len(words), dtype=np.float32)
    return PieceTokenizer(tuple(found), scores, 1, (1, 2))


def write_gguf(path: Path, weights: Weights, quantization: str, **changes) -> None:
    """Write a model with the package `gguf`; ``changes`` are other values of its fields.

    ``more`` is the name of a tensor that it has, too.
    """
    import gguf

    kind = gguf.GGMLQuantizationType[quantization]
    shape, tokenizer = weights.shape, pieces(weights.shape.vocab)
    values = {
        "architecture": "llama", "rope_scaling": "none", "tokenizer": "llama",
        "context_length": shape.positions, "kv_heads": shape.kv_heads, "add_bos": True, "more": "",
        **changes,
    }
    writer = gguf.GGUFWriter(path, values["architecture"])
    writer.add_context_length(values["context_length"])
    writer.add_embedding_length(shape.dim)
    writer.add_block_count(shape.layers)
    writer.add_feed_forward_length(shape.hidden)
    writer.add_head_count(shape.heads)
    writer.add_head_count_kv(values["kv_heads"])
    writer.add_layer_norm_rms_eps(shape.epsilon)
    writer.add_rope_freq_base(shape.rope_theta)
    if values["rope_scaling"] != "none":
        writer.add_rope_scaling_type(gguf.RopeScalingType(values["rope_scaling"]))
    writer.add_tokenizer_model(values["tokenizer"])
    marked = [piece.decode().replace(" ", "\u2581") for piece in tokenizer.pieces]
    writer.add_token_list(marked)
    writer.add_token_scores(tokenizer.scores.tolist())
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_add_bos_token(values["add_bos"])

    def add(name, array):
        if array.ndim == 1:
            writer.add_tensor(name, array)
        else:
            writer.add_tensor(name, gguf.quants.quantize(array, kind), raw_dtype=kind)

    add("token_embd.weight", weights.embedding)
    add("output_norm.weight", weights.final_gain)
    if weights.classifier is not weights.embedding:
        add("output.weight", weights.classifier)
    if values["more"]:
        add(values["more"], weights.final_gain)
    names = {
        "attention_gain": "attn_norm", "wq": "attn_q", "wk": "attn_k", "wv": "attn_v",
        "wo": "attn_output", "ffn_gain": "ffn_norm", "w1": "ffn_gate", "w2": "ffn_down",
        "w3": "ffn_up",
    }
    for layer in range(shape.layers):
        for key, name in names.items():
            add(f"blk.{layer}.{name}.weight", getattr(weights, key)[layer])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def write_hugging_face(folder: Path, weights: Weights, dtype="float32", **changes) -> None:
    """Write a folder with the packages `safetensors` and `tokenizers`.

    Rows of Q and K are in the order of Hugging Face: the first halves of the pairs of a head, then
    the second ones. ``changes`` are other values of config.json.
    """
    import ml_dtypes
    import tokenizers
    from safetensors.numpy import save_file

    folder.mkdir(exist_ok=True)
    shape = weights.shape
    config = {
        "model_type": "llama", "hidden_size": shape.dim, "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.heads, "num_key_value_heads": shape.kv_heads,
        "intermediate_size": shape.hidden, "vocab_size": shape.vocab,
        "max_position_embeddings": shape.positions, "rope_theta": shape.rope_theta,
        "rms_norm_eps": shape.epsilon, "hidden_act": "silu", "bos_token_id": 1, "eos_token_id": 2,
        "tie_word_embeddings": weights.classifier is weights.embedding, **changes,
    }
    (folder / "config.json").write_text(json.dumps(config))
    names = {
        "attention_gain": "input_layernorm", "wq": "self_attn.q_proj", "wk": "self_attn.k_proj",
        "wv": "self_attn.v_proj", "wo": "self_attn.o_proj",
        "ffn_gain": "post_attention_layernorm", "w1": "mlp.gate_proj", "w2": "mlp.down_proj",
        "w3": "mlp.up_proj",
    }
    tensors = {
        "model.embed_tokens.weight": weights.embedding, "model.norm.weight": weights.final_gain,
    }
    if weights.classifier is not weights.embedding:
        tensors["lm_head.weight"] = weights.classifier
    half = shape.head_dim // 2
    order = [2 * i for i in range(half)] + [2 * i + 1 for i in range(half)]
    for layer in range(shape.layers):
        for key, name in names.items():
            array = getattr(weights, key)[layer]
            if key in ("wq", "wk"):
                heads = range(0, len(array), shape.head_dim)
                array = array[[head + i for head in heads for i in order]]
            tensors[f"model.layers.{layer}.{name}.weight"] = array
    kind = ml_dtypes.bfloat16 if dtype == "bfloat16" else np.dtype(dtype)
    save_file(
        {key: np.ascontiguousarray(value.astype(kind)) for key, value in tensors.items()},
        folder / "model.safetensors",
    )
    words = {"<unk>": 0, "<s>": 1, "</s>": 2, "the": 3, "cat": 4, "ö": 5}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="<unk>"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    tokenizer.save(str(folder / "tokenizer.json"))
