#include "sheave/kernels/quantized_linear/quantized_reference.h"

#include <mlx/ops.h>

#include "sheave/kernels/activations/activations.h"
#include "sheave/kernels/rms_norm/rms_norm.h"

namespace sheave::kernels {
namespace {

mx::array normed(const mx::array& x, const std::optional<NormWeight>& norm) {
  return norm ? rms_norm(x, norm->weight, norm->eps) : x;
}

/// x rounded to what 8-bit quants of 32 columns can hold.
mx::array rounded(const mx::array& x) {
  const mx::array groups =
      mx::reshape(mx::astype(x, mx::float32), {x.shape(0), -1, 32});
  const mx::array largest = mx::max(mx::abs(groups), 2, true);
  const mx::array inverse = mx::where(
      mx::less(largest, mx::array(1e-30F)),
      mx::array(0.0F),
      mx::divide(mx::array(127.0F), largest));
  const mx::array quants = mx::round(mx::multiply(groups, inverse));
  const mx::array scale = mx::divide(largest, mx::array(127.0F));
  return mx::reshape(mx::multiply(quants, scale), x.shape());
}

mx::array product(const mx::array& x, const PackedWeight& weight) {
  return mx::matmul(rounded(x), mx::transpose(dequantize(weight)));
}

} // namespace

mx::array quantized_linear_reference(
    const mx::array& x,
    const PackedWeight& weight,
    const QuantizedLinearOptions& options) {
  mx::array y = product(normed(x, options.norm), weight);
  y = options.bias ? mx::add(y, *options.bias) : y;
  y = normed(y, options.output_norm);
  return options.residual ? mx::add(y, *options.residual) : y;
}

mx::array quantized_gated_reference(
    const mx::array& x,
    const PackedWeight& gate,
    const PackedWeight& up,
    GateKind kind,
    const std::optional<NormWeight>& norm) {
  const mx::array input = normed(x, norm);
  const mx::array g = product(input, gate);
  const mx::array u = product(input, up);
  return gated(kind, g, u);
}

std::array<mx::array, 3> quantized_qkv_reference(
    const mx::array& x,
    const QKVProjections& projections,
    const mx::array& table,
    const std::optional<NormWeight>& norm) {
  const auto& p = projections;
  const mx::array input = normed(x, norm);
  const auto project = [&](const PackedWeight& weight, size_t index) {
    const mx::array y = product(input, weight);
    return mx::reshape(
        p.biases[index] ? mx::add(y, *p.biases[index]) : y,
        {x.shape(0), weight.out_features / p.head_dim, p.head_dim});
  };
  return {
      rope(normed(project(p.q_proj, 0), p.q_norm), table, p.rope_pairs),
      rope(normed(project(p.k_proj, 1), p.k_norm), table, p.rope_pairs),
      project(p.v_proj, 2)};
}

mx::array quantized_tail_reference(
    const mx::array& attended,
    const mx::array& residual,
    const LayerTail& tail) {
  const mx::array hidden = quantized_linear_reference(
      attended,
      tail.o_proj,
      {.bias = tail.o_bias,
       .output_norm = tail.attention_output_norm,
       .residual = residual});
  return quantized_linear_reference(
      quantized_gated_reference(
          hidden,
          tail.gate_proj,
          tail.up_proj,
          tail.gate,
          tail.mlp_norm),
      tail.down_proj,
      {.bias = tail.down_bias,
       .output_norm = tail.mlp_output_norm,
       .residual = hidden});
}

} // namespace sheave::kernels
