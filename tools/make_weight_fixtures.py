#!/usr/bin/env python3
r"""Makes tests/fixtures/weights and the seeds of tests/fuzz/corpus.

    PYTHONPATH=DIR:DIR/gguf-py \
      python tools/make_weight_fixtures.py --oracle SMALL

SMALL holds tiny Hugging Face checkpoints (oracle/make_tiny.py --small), DIR is
llama.cpp's source (de3ff81), whose converter writes the metadata of the same
models. Needs numpy, torch, transformers, mlx and what these import.

types.gguf       a [4, 512] matrix of each tensor type, "TYPE.weight", and beside
                 it "TYPE.expected.weight", what the gguf package makes of it
config/NAME.json, config/NAME.gguf
                 config.json and converted metadata of one model; the tensors
                 are those that metadata alone doesn't tell of
affine/          a folder as mlx-lm writes it: 4-bit groups of 64, and by
                 override 8-bit groups of 32, and not quantized
"""

import argparse
import json
import pathlib
import shutil
import tempfile

import gguf
import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent
FIXTURES = ROOT / "tests" / "fixtures" / "weights"
CORPUS = ROOT / "tests" / "fuzz" / "corpus"
TYPES = gguf.GGMLQuantizationType
PLAIN = [TYPES.F32, TYPES.F16, TYPES.BF16]
BLOCKS = [TYPES.Q4_0, TYPES.Q4_1, TYPES.Q5_0, TYPES.Q5_1, TYPES.Q8_0]
# Offsets of the half-precision scales: the package can't make these types.
K_QUANTS = {TYPES.Q4_K: (0, 2), TYPES.Q5_K: (0, 2), TYPES.Q6_K: (208,)}
MODELS = ["llama", "llama_tied", "qwen3", "gemma3_text", "mistral_swa"]


def random_blocks(rng, kind, offsets, rows, columns):
    elements, size = gguf.GGML_QUANT_SIZES[kind]
    blocks = rng.integers(0, 256, (rows, columns // elements, size), np.uint8)
    for offset in offsets:
        scales = rng.uniform(0.001, 0.1, blocks.shape[:2]).astype(np.float16)
        blocks[:, :, offset : offset + 2] = scales[..., None].view(np.uint8)
    return blocks.reshape(rows, -1)


def make_types(rows=4, columns=512):
    rng = np.random.default_rng(7)
    writer = gguf.GGUFWriter(FIXTURES / "types.gguf", "test")
    for kind in PLAIN + BLOCKS + list(K_QUANTS):
        if kind in K_QUANTS:
            data = random_blocks(rng, kind, K_QUANTS[kind], rows, columns)
        else:
            values = rng.normal(size=(rows, columns)).astype(np.float32)
            data = gguf.quants.quantize(values, kind)
        expected = gguf.quants.dequantize(data, kind).astype(np.float32)
        writer.add_tensor(f"{kind.name}.weight", data, raw_dtype=kind)
        writer.add_tensor(f"{kind.name}.expected.weight", expected)
    write(writer)


def write(writer):
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def convert(folder, path):
    """The converter's own metadata, without its idea of our tokenizer."""
    from conversion import get_model_class  # noqa: PLC0415
    from conversion.base import ModelBase  # noqa: PLC0415

    hparams = ModelBase.load_hparams(folder, False)
    architecture = hparams["architectures"][0]
    kind = get_model_class(architecture)
    kind.set_vocab = lambda self: None
    model = kind(folder, gguf.LlamaFileType.ALL_F32, path)
    model.write()


def strip(source, path):
    """Copies metadata, and of the tensors the embedding, head and biases."""
    reader = gguf.GGUFReader(source)
    field = reader.fields["general.architecture"]
    writer = gguf.GGUFWriter(path, str(bytes(field.parts[-1]), "utf-8"))
    for key, field in reader.fields.items():
        if key.startswith("GGUF.") or key == "general.architecture":
            continue
        kind = field.types[0]
        if kind == gguf.GGUFValueType.ARRAY:
            writer.add_array(key, field.contents())
        else:
            writer.add_key_value(key, field.contents(), kind)
    for tensor in reader.tensors:
        if tensor.name in ("token_embd.weight", "output.weight"):
            zeros = np.zeros(tensor.data.shape, np.float32)
            data = gguf.quants.quantize(zeros, TYPES.Q4_0)
            writer.add_tensor(tensor.name, data, raw_dtype=TYPES.Q4_0)
        elif tensor.name == "rope_freqs.weight":
            writer.add_tensor(tensor.name, tensor.data)
    write(writer)


def make_configs(oracle):
    (FIXTURES / "config").mkdir(exist_ok=True)
    for name in MODELS:
        shutil.copy(
            oracle / name / "config.json", FIXTURES / "config" / f"{name}.json"
        )
        with tempfile.TemporaryDirectory() as scratch:
            whole = pathlib.Path(scratch) / "whole.gguf"
            convert(oracle / name, whole)
            strip(whole, FIXTURES / "config" / f"{name}.gguf")


def make_affine():
    import mlx.core as mx  # noqa: PLC0415

    mx.random.seed(7)
    folder = FIXTURES / "affine"
    folder.mkdir(exist_ok=True)
    tensors = {}
    quantization = {"group_size": 64, "bits": 4, "mode": "affine"}
    kinds = {"q_proj": (64, 4), "k_proj": (32, 8), "v_proj": None}
    for name, kind in kinds.items():
        prefix = f"model.layers.0.self_attn.{name}"
        weight = mx.random.normal((8, 128)).astype(mx.bfloat16)
        tensors[f"{prefix}.weight"] = weight
        if kind is None:
            quantization[prefix] = False
            tensors[f"{prefix}.expected.weight"] = weight.astype(mx.float32)
            continue
        packed = mx.quantize(weight, *kind)
        for part, array in zip(("weight", "scales", "biases"), packed):
            tensors[f"{prefix}.{part}"] = array
        words, scales, biases = packed
        floats = scales.astype(mx.float32), biases.astype(mx.float32)
        expected = mx.dequantize(words, *floats, *kind)
        tensors[f"{prefix}.expected.weight"] = expected
        if kind != (64, 4):
            group_size, bits = kind
            quantization[prefix] = {"group_size": group_size, "bits": bits}
    mx.save_safetensors(str(folder / "model.safetensors"), tensors)
    config = {"model_type": "llama", "hidden_size": 128, "head_dim": 32}
    config |= {"num_attention_heads": 4, "quantization": quantization}
    (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n")


def make_corpus(oracle):
    for name in ("gguf", "safetensors", "config"):
        (CORPUS / name).mkdir(parents=True, exist_ok=True)
    for name in ("gemma3_text", "llama_tied"):
        shutil.copy(
            FIXTURES / "config" / f"{name}.gguf",
            CORPUS / "gguf" / f"{name}.gguf",
        )
    make_small_gguf(CORPUS / "gguf" / "small.gguf")
    for name in [*MODELS, "ministral_swa"]:
        shutil.copy(
            oracle / name / "config.json", CORPUS / "config" / f"{name}.json"
        )
    shutil.copy(
        FIXTURES / "affine" / "config.json", CORPUS / "config" / "affine.json"
    )
    (CORPUS / "config" / "nested.json").write_text(NESTED)
    header = json.dumps(
        {
            "__metadata__": {"format": "pt"},
            "a.weight": {
                "dtype": "BF16",
                "shape": [2, 2],
                "data_offsets": [0, 8],
            },
            "b": {"dtype": "F32", "shape": [], "data_offsets": [8, 12]},
        }
    ).encode()
    size = len(header).to_bytes(8, "little")
    (CORPUS / "safetensors" / "two").write_bytes(size + header + bytes(12))
    index = {"weight_map": {"a": "model-1.safetensors", "b": "m2"}}
    (CORPUS / "safetensors" / "index").write_text(json.dumps(index))


NESTED = """{"model_type": "gemma3", "tie_word_embeddings": true,
"text_config": {"hidden_size": 2560, "model_type": "gemma3_text",
"num_hidden_layers": 12, "rope_parameters": {"full_attention": {"rope_type":
"linear", "factor": 8.0, "rope_theta": 1e6}, "sliding_attention": {"rope_type":
"default", "rope_theta": 10000.0}}}}
"""


def make_small_gguf(path):
    """Every kind of value, and a model that is complete but for its size."""
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_block_count(1)
    writer.add_embedding_length(32)
    writer.add_feed_forward_length(32)
    writer.add_head_count(2)
    writer.add_context_length(64)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_float64("test.f64", 1.5)
    writer.add_int8("test.i8", -1)
    writer.add_uint64("test.u64", 1)
    writer.add_bool("test.bool", True)
    writer.add_array("test.lists", [[1, 2], [3]])
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list([b"a", b"\xff", b"b"])
    writer.add_token_scores([0.0, 1.0, 2.0])
    writer.add_token_types([1, 1, 3])
    writer.add_bos_token_id(1)
    writer.add_add_bos_token(True)
    writer.add_chat_template("{{ messages }}")
    rows = np.zeros((3, 32), np.float32)
    writer.add_tensor(
        "token_embd.weight",
        gguf.quants.quantize(rows, TYPES.Q4_1),
        raw_dtype=TYPES.Q4_1,
    )
    writer.add_tensor("blk.0.attn_norm.weight", np.ones(32, np.float32))
    write(writer)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--oracle", type=pathlib.Path, required=True)
    arguments = parser.parse_args()
    FIXTURES.mkdir(parents=True, exist_ok=True)
    make_types()
    make_configs(arguments.oracle)
    make_affine()
    make_corpus(arguments.oracle)


if __name__ == "__main__":
    main()
