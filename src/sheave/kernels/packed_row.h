// PackedRow: one stored row of a quantized weight as plain integers and
// scales, on its way into a panel. Internal to the kernels room.
#pragma once

#include <cstdint>
#include <vector>

#include "sheave/kernels/kernel_table.h"

namespace sheave::kernels {

/// quants: one byte per column. scales, biases: one per scale group, as bytes
/// of the type that packed_layout() says; super_*: half precision, one per 256
/// columns. w = super_scale * scale * (q - zero) + super_bias * bias, without
/// the super factors where the format has none.
struct PackedRow {
  std::vector<uint8_t> quants;
  std::vector<uint8_t> scales;
  std::vector<uint8_t> biases;
  std::vector<uint8_t> super_scales;
  std::vector<uint8_t> super_biases;
};

/// Reads row `row` of a quantized weight. For K-quants with minimums,
/// super_biases hold -dmin, so that biases are added.
/// Source of the block layouts: ggml-common.h of llama.cpp; MLX's affine
/// packing: mlx/backend/cpu/quantized.cpp.
void read_packed_row(const WeightRows& weight, int row, PackedRow& out);

} // namespace sheave::kernels
