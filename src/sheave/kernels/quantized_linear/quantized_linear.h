// Products with packed weights, in the fused forms that a decoder layer needs.
// Activations are quantized to 8-bit integers, 32 columns to a scale, and
// multiplied in integers; sums over the groups of columns are float32, in
// ascending order. So a token's bits depend on that token alone, not on T, its
// place among the T, or the number of threads, and are the same on every
// target that has fused multiply-add.
#pragma once

#include <mlx/array.h>

#include <array>
#include <optional>

#include "sheave/kernels/activations/gate_kind.h"
#include "sheave/kernels/packed_weight.h"
#include "sheave/kernels/rope/rope.h"

namespace sheave::kernels {

/// RMSNorm over the last axis, with a float32 weight.
struct NormWeight {
  mx::array weight;
  float eps;
};

/// What a product does beside multiplying. norm: of x, before it is quantized;
/// bias: [out_features]; output_norm: of the product and bias; residual:
/// [T, out_features] float32, added last.
struct QuantizedLinearOptions {
  std::optional<NormWeight> norm;
  std::optional<mx::array> bias;
  std::optional<NormWeight> output_norm;
  std::optional<mx::array> residual;
};

/// x W^T. x: [T, in_features], any float dtype. Returns [T, out_features]
/// float32. An x that isn't finite gives NaN in its token's row.
/// Throws std::invalid_argument when shapes don't fit.
mx::array quantized_linear(
    const mx::array& x,
    const PackedWeight& weight,
    const QuantizedLinearOptions& options = {});

/// act(x G^T) * (x U^T): gate and up in one pass. Otherwise as
/// quantized_linear(); norm: of x.
mx::array quantized_gated(
    const mx::array& x,
    const PackedWeight& gate,
    const PackedWeight& up,
    GateKind kind,
    const std::optional<NormWeight>& norm);

/// The projections of an attention layer, and what follows them. biases: all
/// or none; q_norm, k_norm: per head; table: rope_table() of the step.
struct QKVProjections {
  PackedWeight q_proj;
  PackedWeight k_proj;
  PackedWeight v_proj;
  std::array<std::optional<mx::array>, 3> biases;
  std::optional<NormWeight> q_norm;
  std::optional<NormWeight> k_norm;
  int head_dim;
  RopePairs rope_pairs;
};

/// Queries, keys and values of x: [T, H, D] float32 each, normed per head
/// where there is a norm, queries and keys rotated. Otherwise as
/// quantized_linear(); norm: of x.
std::array<mx::array, 3> quantized_qkv(
    const mx::array& x,
    const QKVProjections& projections,
    const mx::array& table,
    const std::optional<NormWeight>& norm);

/// What follows attention in a decoder layer; norms and biases may be absent.
struct LayerTail {
  PackedWeight o_proj;
  std::optional<mx::array> o_bias;
  std::optional<NormWeight> attention_output_norm;
  std::optional<NormWeight> mlp_norm;
  PackedWeight gate_proj;
  PackedWeight up_proj;
  GateKind gate;
  PackedWeight down_proj;
  std::optional<mx::array> down_bias;
  std::optional<NormWeight> mlp_output_norm;
};

/// h = attention_output_norm(attended O^T) + residual, then
/// h + mlp_output_norm(gated(mlp_norm(h)) D^T), the bits of the calls above
/// one after another. attended: [T, Hq * D]; residual: [T, hidden_size].
/// Returns [T, hidden_size] float32. Otherwise as quantized_linear().
mx::array quantized_tail(
    const mx::array& attended,
    const mx::array& residual,
    const LayerTail& tail);

} // namespace sheave::kernels
