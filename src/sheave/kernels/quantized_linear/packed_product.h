// PackedProduct: what the primitives of this folder share: x normed and
// quantized, then multiplied with one or more packed weights. Internal to the
// kernels room.
#pragma once

#include <span>
#include <vector>

#include "sheave/kernels/cpu_primitive.h"
#include "sheave/kernels/kernel_table.h"
#include "sheave/kernels/packed_weight.h"

namespace sheave::kernels {

/// A packed weight without its array, which travels as an input.
struct PackedSpec {
  explicit PackedSpec(const PackedWeight& weight)
      : layout(weight.layout), out_features(weight.out_features) {}

  PackedLayout layout;
  int out_features;
};

/// x: [m, k] float32. norm_weight: [k] or null.
struct ProductInput {
  const float* x;
  int m;
  int k;
  const float* norm_weight;
  float eps;
};

/// One of the weights that a product multiplies with, and where that goes.
struct ProductOutput {
  const PackedSpec* spec;
  const uint8_t* panels;
  float* out; // [m, out_features]
  const float* bias;
  const float* residual;
};

/// Floats of scratch that a product of m rows with these weights needs, shared
/// and per worker.
ScratchSize product_scratch(int m, int k, std::span<const PackedSpec> weights);

/// x, quantized for weights of some layouts.
struct PreparedInput {
  QuantizedTokens tokens;
  std::vector<const int32_t*> starts;   // per weight
  std::vector<const float*> bias_sums;  // per weight
};

/// Norms and quantizes the rows.
PreparedInput prepare_input(
    const ProductInput& input,
    std::span<const PackedSpec> weights,
    const Scratch& scratch);

/// The task of one weight: all its panels, all tokens.
PackedTask whole_task(
    const PreparedInput& input,
    size_t index,
    const ProductOutput& output);

/// Panels per unit of work for panels of this size, fixed by shape.
int panels_per_task(int panels, size_t panel_bytes, int m);

/// Tokens per unit of work, whole tiles: as many as stay in a core's cache.
int tokens_per_task(int k);

/// Multiplies with all weights, their panels handed out together.
void multiply(
    const PreparedInput& input,
    std::span<const ProductOutput> outputs,
    const Scratch& scratch);

} // namespace sheave::kernels
