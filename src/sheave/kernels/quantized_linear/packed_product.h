// PackedProduct: what the primitives of this folder share: x normed and
// quantized, then multiplied with one or more packed weights. Internal to the
// kernels room.
#pragma once

#include <array>
#include <span>

#include "sheave/kernels/cpu_primitive.h"
#include "sheave/kernels/kernel_table.h"
#include "sheave/kernels/packed_weight.h"

namespace sheave::kernels {

/// Weights that a product multiplies with at once, at most.
constexpr size_t kMaxWeights = 3;

/// x: [m, k] float32. norm_weight: [k] or null.
struct ProductInput {
  const float* x;
  int m;
  int k;
  const float* norm_weight;
  float eps;
};

/// x: [m, k] float32, evaluated.
inline ProductInput
product_input(const mx::array& x, const float* norm_weight, float eps) {
  return {
      .x = x.data<float>(),
      .m = x.shape(0),
      .k = x.shape(1),
      .norm_weight = norm_weight,
      .eps = eps};
}

/// One of the weights that a product multiplies with, and where that goes.
struct ProductOutput {
  const PackedWeight* weight;
  float* out; // [m, out_features]
  const float* bias;
  const float* residual;
};

/// Floats of scratch that a product of m rows with these weights needs, shared
/// and per worker.
ScratchSize
product_scratch(int m, int k, std::span<const PackedWeight> weights);

/// x, quantized for weights of some layouts.
struct PreparedInput {
  QuantizedTokens tokens;
  std::array<int32_t*, kMaxWeights> starts;  // per weight
  std::array<float*, kMaxWeights> bias_sums; // per weight
};

/// Norms and quantizes the rows.
PreparedInput prepare_input(
    const ProductInput& input,
    std::span<const PackedWeight> weights,
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
