#!/usr/bin/env python3
"""Makes tests/fixtures/quant/vectors.safetensors.

    python tools/make_quant_vectors.py

For each of GGUF's block formats that the kernels decode: NAME.blocks, random
bytes as [rows, row bytes], and NAME.values, the float32 that gguf's own
dequantize makes of them. Quants are any bits; the half-precision scales of a
row are of one kind, see SCALES. Needs numpy, gguf (2.4.6 of numpy, 0.19.0 of
gguf made what is checked in) and safetensors.
"""

import pathlib

import gguf
import numpy as np
from safetensors.numpy import save_file

ROOT = pathlib.Path(__file__).resolve().parent.parent
FIXTURE = ROOT / "tests" / "fixtures" / "quant" / "vectors.safetensors"
COLUMNS = 512
SEED = 20240
TYPES = gguf.GGMLQuantizationType
# Offsets of the half-precision scales, and of Q4_1's and others' minima.
HALVES = {
    TYPES.Q4_0: (0,),
    TYPES.Q4_1: (0, 2),
    TYPES.Q5_0: (0,),
    TYPES.Q5_1: (0, 2),
    TYPES.Q8_0: (0,),
    TYPES.Q4_K: (0, 2),
    TYPES.Q5_K: (0, 2),
    TYPES.Q6_K: (208,),
}
LARGEST = 0x7BFF  # 65504
SMALLEST_NORMAL = 0x0400
# The ranges of bits, both ends within, from which a row's scales are drawn.
SCALES = {
    "usual": (0x1000, 0x3000),
    "subnormal": (1, SMALLEST_NORMAL - 1),
    "large": (0x7800, LARGEST),
    "negative": (0x8000, 0x8000 | LARGEST),
    "any": None,
    "edges": [0, 0x8000, 1, 0x8001, SMALLEST_NORMAL, 0x03FF, LARGEST, 0xFBFF],
}


def scale_bits(rng, kind, count):
    if isinstance(kind, list):
        return rng.choice(np.array(kind, np.uint16), count)
    if kind is None:
        signs = rng.integers(0, 2, count, np.uint16) << 15
        return signs | rng.integers(0, LARGEST + 1, count, np.uint16)
    low, high = kind
    return rng.integers(low, high + 1, count, np.uint16)


def make_blocks(rng, kind):
    elements, size = gguf.GGML_QUANT_SIZES[kind]
    shape = (len(SCALES), COLUMNS // elements, size)
    blocks = rng.integers(0, 256, shape, np.uint8)
    for row, scales in enumerate(SCALES.values()):
        for offset in HALVES[kind]:
            bits = scale_bits(rng, scales, shape[1]).astype("<u2")
            halves = bits[:, None].view(np.uint8)
            blocks[row, :, offset : offset + 2] = halves
    return blocks.reshape(shape[0], -1)


def main():
    rng = np.random.default_rng(SEED)
    tensors = {}
    for kind in HALVES:
        blocks = make_blocks(rng, kind)
        values = gguf.quants.dequantize(blocks, kind).astype(np.float32)
        assert values.shape == (len(SCALES), COLUMNS), kind.name
        assert np.isfinite(values).all(), kind.name
        tensors[f"{kind.name}.blocks"] = blocks
        tensors[f"{kind.name}.values"] = np.ascontiguousarray(values)
    FIXTURE.parent.mkdir(parents=True, exist_ok=True)
    save_file(tensors, FIXTURE)


if __name__ == "__main__":
    main()
