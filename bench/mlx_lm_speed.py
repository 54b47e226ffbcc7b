#!/usr/bin/env python3
"""mlx-lm's side of bench/vs_mlx_lm; runs in a Python that has mlx-lm.

    mlx_lm_speed.py measure FOLDER PROMPT TOKENS BATCH
    mlx_lm_speed.py prepare GGUF FOLDER DTYPE

measure prints one JSON object: tokens/s of the prompts and of decoding, after
a short one to warm up, by mlx-lm's own stream_generate or, for several rows,
batch_generate, as its benchmark does. prepare needs torch, transformers and
gguf as well: it dequantizes a GGUF file, and quantizes it as mlx-lm does, 4
bits in groups of 64, with scales and norms of DTYPE.
"""

import json
import os
import shutil
import sys
import tempfile
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")

GROUP_SIZE = 64
BITS = 4
WARM_UP_TOKENS = 8


def speeds(model, tokenizer, prompts: list, tokens: int):
    """mlx-lm's statistics of one answer to each prompt."""
    from mlx_lm import batch_generate, stream_generate

    if len(prompts) > 1:
        return batch_generate(model, tokenizer, prompts, max_tokens=tokens).stats
    last = None
    for last in stream_generate(model, tokenizer, prompts[0], max_tokens=tokens):
        pass
    return last


def measure(folder: str, prompt: int, tokens: int, batch: int) -> None:
    import mlx.core as mx
    import mlx_lm

    mx.set_default_device(mx.cpu)
    mx.random.seed(1)
    model, tokenizer = mlx_lm.load(folder)
    tokenizer._eos_token_ids = {}  # as mlx_lm.benchmark does: no early end
    config = json.loads((Path(folder) / "config.json").read_text())
    prompts = mx.random.randint(0, config["vocab_size"], (batch, prompt)).tolist()
    speeds(model, tokenizer, [prompt[:WARM_UP_TOKENS] for prompt in prompts], 2)
    found = speeds(model, tokenizer, prompts, tokens)
    print(json.dumps({
        "prefill": found.prompt_tps,
        "decode": found.generation_tps,
        "mlx_lm": mlx_lm.__version__,
        "mlx": mx.__version__,
    }))


def add_older_keys(folder: Path) -> None:
    """transformers 5 writes rope_parameters alone; mlx-lm's llama and gemma3 read
    rope_theta and would silently take their defaults."""
    path = folder / "config.json"
    config = json.loads(path.read_text())
    rope = config.get("rope_parameters") or {}
    if "rope_theta" in rope:
        config["rope_theta"] = rope["rope_theta"]
    if "full_attention" in rope:
        config["rope_theta"] = rope["full_attention"]["rope_theta"]
        config["rope_local_base_freq"] = rope["sliding_attention"]["rope_theta"]
    if "_sliding_window_pattern" in config:
        config["sliding_window_pattern"] = config["_sliding_window_pattern"]
    path.write_text(json.dumps(config, indent=2) + "\n")


def dequantize(gguf: Path, folder: Path) -> None:
    """A GGUF file as a folder of float32 weights in Hugging Face's layout."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name)
    model = AutoModelForCausalLM.from_pretrained(
        gguf.parent, gguf_file=gguf.name, dtype=torch.float32)
    # The weights are plain now, but transformers still marks the model as
    # quantized and would refuse to save it.
    model.hf_quantizer = None
    if hasattr(model.config, "quantization_config"):
        del model.config.quantization_config
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    add_older_keys(folder)


def prepare(gguf: str, folder: str, dtype: str) -> None:
    from mlx_lm import convert

    with tempfile.TemporaryDirectory(dir=Path(folder).parent) as work:
        plain, quantized = Path(work) / "plain", Path(work) / "quantized"
        dequantize(Path(gguf).resolve(), plain)
        convert(
            str(plain), mlx_path=str(quantized), quantize=True, q_group_size=GROUP_SIZE,
            q_bits=BITS, dtype=dtype)
        shutil.move(quantized, folder)


def main() -> int:
    job, *rest = sys.argv[1:]
    if job == "measure":
        measure(rest[0], *map(int, rest[1:]))
    elif job == "prepare":
        prepare(*rest)
    else:
        print(__doc__, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
