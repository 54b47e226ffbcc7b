// The products with raw pointers, as primitives put them together. Internal to
// the kernels room.
#pragma once

#include <array>

#include "sheave/kernels/quantized_linear/packed_product.h"
#include "sheave/kernels/quantized_linear/quantized_linear.h"

namespace sheave::kernels {

/// out = output_norm(norm(x) W^T + bias) + residual; null for what is left
/// out. out, residual: [m, out_features].
struct LinearCall {
  const PackedWeight* weight;
  ProductInput input;
  const float* bias;
  const float* output_norm;
  float output_eps;
  const float* residual;
  float* out;
};
ScratchSize linear_scratch(const PackedWeight& weight, int m);
void run_linear(const LinearCall& call, const Scratch& scratch);

/// out = act(norm(x) G^T) * (norm(x) U^T), [m, out_features].
struct GatedCall {
  const std::array<PackedWeight, 2>* weights; // gate, up
  GateKind kind;
  ProductInput input;
  float* out;
};
ScratchSize gated_scratch(const std::array<PackedWeight, 2>& weights, int m);
void run_gated(const GatedCall& call, const Scratch& scratch);

} // namespace sheave::kernels
