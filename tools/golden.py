#!/usr/bin/env python3
"""Makes the tiny checkpoints with golden logits of tests/fixtures/golden.

    pip install mlx-lm 'mlx[cpu]' torch 'transformers>=5.7' safetensors tokenizers
    tools/golden.py [--out tests/fixtures/golden] [--only NAME ...]

Every checkpoint has random weights drawn from its tensors' names, rounded to
bfloat16; norms, biases and scales are off their neutral values, so that a
runtime which forgets one of them fails. golden.safetensors holds `prompt` [45]
and `tokens` [40] int32, `prompt_logits` [45, V] and `step_logits` [40, V]
float32; step_logits[i] are the logits from which tokens[i] was taken (argmax).

Float checkpoints: logits by Transformers, float32, eager attention, no cache.
NAME-4bit, -8bit, -mixed: NAME quantized by mlx-lm (group 64, group 32, and by
layer, one layer left alone), logits by mlx-lm with every float array cast to
float32.
"""

import argparse
import json
import os
import shutil
import zlib
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")

PROMPT_TOKENS, NEW_TOKENS, WINDOW, VOCAB = 45, 40, 16, 384
SPECIALS = ["<pad>", "<bos>", "<eos>", "<|im_start|>", "<|im_end|>"]
TEXT = (
    "The capital of a country is a city where the government has its seat. "
    "What is the answer to the question? for (int i = 0; i < n; ++i) { sum += a[i]; }"
)
TEMPLATE = (
    "{%- for m in messages %}"
    "{{- '<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>\n' }}"
    "{%- endfor %}"
    "{%- if add_generation_prompt %}{{- '<|im_start|>assistant\n' }}{%- endif %}"
)
CORPUS = """
The quick brown fox jumps over the lazy dog while the sun sets behind the hills.
A language model reads tokens from left to right and predicts the next token.
The cache keeps keys and values, so that earlier tokens need not be computed again.
When the window is full, the oldest entry is overwritten by the newest entry.
In the beginning there was a small model, and the small model was tested often.
Testing a runtime against a reference needs numbers that are the same every time.
Numbers such as 0 1 2 3 4 5 6 7 8 9 10 11 12 100 128 256 512 1024 are common here.
def main(args): return [int(x) for x in args if x is not None]
for (int i = 0; i < n; ++i) { sum += a[i] * b[i]; }
Paris is the capital of France. Rome is the capital of Italy. Oslo is in Norway.
The capital of a country is a city where the government of the country has its seat.
She said that they would come, but he thought that the others were not there yet.
What is the answer to the question? The answer is that there are many answers.
import numpy as np; import math; print("hello world"); assert True
"""
COMMON = dict(
    vocab_size=VOCAB, hidden_size=64, intermediate_size=128, num_hidden_layers=8,
    num_attention_heads=4, num_key_value_heads=2, head_dim=32,
    max_position_embeddings=2048, rms_norm_eps=1e-6, pad_token_id=0, bos_token_id=1,
    eos_token_id=2, torch_dtype="bfloat16", use_cache=True, attention_dropout=0.0,
    attention_bias=False, initializer_range=0.02,
)


def config(model_type, architecture, drop=(), **keys):
    result = dict(architectures=[architecture], model_type=model_type, **COMMON)
    result.update(keys)
    for key in drop:
        result.pop(key)
    return result


def llama(**keys):
    keys = dict(hidden_act="silu", rope_theta=10000.0, mlp_bias=False,
                tie_word_embeddings=False) | keys
    return config("llama", "LlamaForCausalLM", **keys)


def qwen3(**keys):
    keys = dict(hidden_act="silu", rope_theta=1000000.0, tie_word_embeddings=True,
                use_sliding_window=False, sliding_window=None) | keys
    return config("qwen3", "Qwen3ForCausalLM", **keys)


def gemma3(**keys):
    keys = dict(
        hidden_activation="gelu_pytorch_tanh", rope_theta=1000000.0,
        rope_local_base_freq=10000.0, query_pre_attn_scalar=32, sliding_window=WINDOW,
        sliding_window_pattern=6, tie_word_embeddings=True,
        layer_types=["sliding_attention"] * 5 + ["full_attention"] + ["sliding_attention"] * 2,
        attn_logit_softcapping=None, final_logit_softcapping=None) | keys
    return config("gemma3_text", "Gemma3ForCausalLM", **keys)


# Transformers 5 writes one rope_parameters per layer type and no older key.
GEMMA3_V5 = gemma3(rope_parameters=dict(
    full_attention=dict(rope_type="default", rope_theta=1000000.0),
    sliding_attention=dict(rope_type="default", rope_theta=10000.0)))
for _key in ("rope_theta", "rope_local_base_freq", "sliding_window_pattern"):
    GEMMA3_V5.pop(_key)

FLOAT = {
    "llama": llama(),
    "llama_tied": llama(
        rope_theta=500000.0, tie_word_embeddings=True,
        rope_scaling=dict(rope_type="llama3", factor=8.0, low_freq_factor=1.0,
                          high_freq_factor=4.0, original_max_position_embeddings=64)),
    "llama_linear": llama(
        num_hidden_layers=3, rope_scaling=dict(type="linear", factor=4.0)),
    # Prompt and answer together exceed the original context of 32.
    "llama_yarn": llama(
        num_hidden_layers=3,
        rope_parameters=dict(rope_type="yarn", rope_theta=10000.0, factor=4.0,
                             original_max_position_embeddings=32)),
    "llama_bias": llama(num_hidden_layers=3, attention_bias=True, mlp_bias=True),
    "llama_sharded": llama(num_hidden_layers=3),
    "mistral_swa": config(
        "mistral", "MistralForCausalLM", hidden_act="silu", rope_theta=10000.0,
        sliding_window=WINDOW, tie_word_embeddings=False, drop=("attention_bias",)),
    "ministral_swa": config(
        "ministral", "MinistralForCausalLM", hidden_act="silu", rope_theta=10000.0,
        sliding_window=WINDOW, tie_word_embeddings=False,
        layer_types=(["full_attention"] + ["sliding_attention"] * 3) * 2,
        drop=("attention_bias",)),
    "qwen3": qwen3(),
    "qwen3_untied": qwen3(
        num_hidden_layers=3, num_attention_heads=8, tie_word_embeddings=False),
    "gemma3_text": gemma3(),
    "gemma3_text_mqa": gemma3(
        query_pre_attn_scalar=64, num_key_value_heads=1, hidden_size=128),
    "gemma3_text_v5": GEMMA3_V5,
}
QUANTIZED = ["llama", "qwen3", "gemma3_text"]
VARIANTS = {"4bit": (4, 64), "8bit": (8, 32), "mixed": (4, 32)}


def dump_json(folder, name, value):
    with open(folder / name, "w", encoding="utf-8") as file:
        json.dump(value, file, indent=2, ensure_ascii=False)
        file.write("\n")


def make_tokenizer(folder, add_bos):
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

    tokenizer = Tokenizer(models.BPE(unk_token=None))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(
        CORPUS.strip().split("\n"),
        trainers.BpeTrainer(
            vocab_size=VOCAB, special_tokens=SPECIALS, show_progress=False,
            initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet())))
    if add_bos:
        tokenizer.post_processor = processors.TemplateProcessing(
            single="<bos> $A", pair="<bos> $A $B", special_tokens=[("<bos>", 1)])
    tokenizer.save(str(folder / "tokenizer.json"))
    plain = dict(lstrip=False, normalized=False, rstrip=False, single_word=False, special=True)
    dump_json(folder, "tokenizer_config.json", dict(
        tokenizer_class="PreTrainedTokenizerFast", bos_token="<bos>", eos_token="<eos>",
        pad_token="<pad>", add_bos_token=add_bos, add_eos_token=False,
        added_tokens_decoder={
            str(i): dict(content=text, **plain) for i, text in enumerate(SPECIALS)},
        additional_special_tokens=["<|im_start|>", "<|im_end|>"], chat_template=TEMPLATE,
        clean_up_tokenization_spaces=False, model_max_length=2048))
    dump_json(folder, "special_tokens_map.json",
              dict(bos_token="<bos>", eos_token="<eos>", pad_token="<pad>"))
    dump_json(folder, "generation_config.json", dict(
        bos_token_id=1, eos_token_id=[2, 4], pad_token_id=0, do_sample=False))


def draw_weights(model, cfg):
    """Fills the model; linears have deviation 1/sqrt(fan in), logits about 3.5."""
    import torch

    hidden, tied = cfg["hidden_size"], cfg["tie_word_embeddings"]
    embedding = 0.02 if "gemma" in cfg["model_type"] else (0.1 if tied else 1.0)

    def draw(name, shape, deviation, mean=0.0):
        generator = torch.Generator().manual_seed(zlib.crc32(f"0/{name}".encode()))
        return torch.randn(shape, generator=generator) * deviation + mean

    with torch.no_grad():
        for name, tensor in model.named_parameters():
            if name.endswith("embed_tokens.weight"):
                value = draw(name, tensor.shape, embedding)
            elif name == "lm_head.weight":
                value = draw(name, tensor.shape, 3.0 / hidden**0.5)
            elif "norm" in name:
                value = draw(name, tensor.shape, 0.1, 0.0 if float(tensor.mean()) < 0.5 else 1.0)
                if name == "model.norm.weight" and tied:
                    value = value + 3.5 / (embedding * hidden**0.5) - 1.0
            elif name.endswith("bias"):
                value = draw(name, tensor.shape, 0.1)
            else:
                value = draw(name, tensor.shape, tensor.shape[1] ** -0.5)
            tensor.copy_(value)


def save_weights(model, cfg, folder, shards):
    import torch
    from safetensors.torch import save_file

    tensors = {k: v.detach().to(torch.bfloat16).contiguous() for k, v in model.state_dict().items()}
    if cfg["tie_word_embeddings"]:
        tensors.pop("lm_head.weight", None)
    if shards == 1:
        save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
        return
    names, weight_map = sorted(tensors), {}
    for shard in range(shards):
        file = f"model-{shard + 1:05d}-of-{shards:05d}.safetensors"
        part = names[shard::shards]
        weight_map |= {name: file for name in part}
        save_file({n: tensors[n] for n in part}, folder / file, metadata={"format": "pt"})
    dump_json(folder, "model.safetensors.index.json",
              dict(metadata=dict(total_size=sum(t.nbytes for t in tensors.values())),
                   weight_map=weight_map))


def save_golden(folder, prompt, tokens, prompt_logits, step_logits):
    import numpy as np
    from safetensors.numpy import save_file

    save_file(dict(prompt=np.array(prompt, np.int32), tokens=np.array(tokens, np.int32),
                   prompt_logits=np.asarray(prompt_logits, np.float32),
                   step_logits=np.asarray(step_logits, np.float32)),
              str(folder / "golden.safetensors"))


def make_float(name, root):
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer

    cfg, folder = FLOAT[name], root / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    dump_json(folder, "config.json", cfg)
    make_tokenizer(folder, add_bos=not name.startswith("qwen"))
    known = {k: v for k, v in cfg.items() if k not in ("torch_dtype", "architectures", "model_type")}
    blank = AutoModelForCausalLM.from_config(
        AutoConfig.for_model(cfg["model_type"], **known)).float()
    draw_weights(blank, cfg)
    save_weights(blank, cfg, folder, shards=3 if name == "llama_sharded" else 1)

    model, report = AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float32, attn_implementation="eager", output_loading_info=True)
    assert not any(report.values()), report
    model.eval()
    prompt = AutoTokenizer.from_pretrained(folder).encode(TEXT)[:PROMPT_TOKENS]
    sequence, steps = list(prompt), []
    with torch.no_grad():
        logits = model(torch.tensor([sequence]), use_cache=False).logits[0].numpy()
        for _ in range(NEW_TOKENS):
            last = model(torch.tensor([sequence]), use_cache=False).logits[0, -1].numpy()
            steps.append(last)
            sequence.append(int(last.argmax()))
    save_golden(folder, prompt, sequence[len(prompt):], logits, steps)


def predicate(variant, layers):
    """What mlx-lm's quantizer asks of each layer: False, True or its parameters."""
    def choose(path, module):
        if not hasattr(module, "to_quantized"):
            return False
        if variant != "mixed":
            return True
        if path.startswith("model.layers.0.self_attn"):
            return False
        if "down_proj" in path or f"layers.{layers - 1}." in path:
            return {"bits": 8, "group_size": 64}
        if "v_proj" in path:
            return {"bits": 6, "group_size": 32}
        return True
    return choose


def make_quantized(name, variant, root):
    import mlx.core as mx
    import numpy as np
    from mlx.utils import tree_map
    from mlx_lm import load
    from mlx_lm.models.cache import make_prompt_cache
    from mlx_lm.utils import quantize_model, save

    mx.set_default_device(mx.cpu)
    source, folder = root / name, root / f"{name}-{variant}"
    shutil.rmtree(folder, ignore_errors=True)
    model, tokenizer, cfg = load(str(source), return_config=True)
    bits, group = VARIANTS[variant]
    model, cfg = quantize_model(
        model, cfg, group, bits,
        quant_predicate=lambda path, module, *rest: predicate(
            variant, cfg["num_hidden_layers"])(path, module))
    save(str(folder), str(source), model, tokenizer, cfg)
    for extra in ("README.md", "chat_template.jinja"):
        (folder / extra).unlink(missing_ok=True)
    for file in ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json",
                 "generation_config.json"):
        shutil.copy(source / file, folder / file)

    model, tokenizer = load(str(folder))
    model.update(tree_map(
        lambda x: x.astype(mx.float32) if mx.issubdtype(x.dtype, mx.floating) else x,
        model.parameters()))
    golden = mx.load(str(source / "golden.safetensors"))
    prompt, cache, steps, tokens = golden["prompt"].tolist(), make_prompt_cache(model), [], []
    logits = model(mx.array([prompt]), cache=cache)[0]
    last = logits[-1]
    for _ in range(NEW_TOKENS):
        steps.append(np.array(last))
        tokens.append(int(mx.argmax(last).item()))
        last = model(mx.array([[tokens[-1]]]), cache=cache)[0, -1]
    save_golden(folder, prompt, tokens, np.array(logits), np.stack(steps))


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("tests/fixtures/golden"))
    parser.add_argument("--only", nargs="*", default=[])
    arguments = parser.parse_args()
    quantized = [f"{name}-{variant}" for name in QUANTIZED for variant in VARIANTS]
    for name in arguments.only or [*FLOAT, *quantized]:
        print(name, flush=True)
        if name in FLOAT:
            make_float(name, arguments.out)
        else:
            base, variant = name.rsplit("-", 1)
            make_quantized(base, variant, arguments.out)


if __name__ == "__main__":
    main()
