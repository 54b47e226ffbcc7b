#include "sheave/nn/decoder_block.h"

#include <utility>

namespace sheave {
namespace {

std::optional<kernels::LayerTail> fused_tail(
    const SelfAttentionParts& attention,
    const GatedMLPParts& mlp) {
  const Linear& o_proj = attention.o_proj;
  const bool fused =
      o_proj.packed() != nullptr && mlp.gate_proj.packed() != nullptr &&
      mlp.up_proj.packed() != nullptr && mlp.down_proj.packed() != nullptr &&
      !mlp.gate_proj.bias() && !mlp.up_proj.bias();
  if (!fused) {
    return std::nullopt;
  }
  return kernels::LayerTail{
      .o_proj = *o_proj.packed(),
      .o_bias = o_proj.bias(),
      .attention_output_norm = weight_of(attention.norms.after),
      .mlp_norm = mlp.norms.before.weight(),
      .gate_proj = *mlp.gate_proj.packed(),
      .up_proj = *mlp.up_proj.packed(),
      .gate = mlp.gate,
      .down_proj = *mlp.down_proj.packed(),
      .down_bias = mlp.down_proj.bias(),
      .mlp_output_norm = weight_of(mlp.norms.after)};
}

} // namespace

DecoderBlock::DecoderBlock(SelfAttention self_attn, GatedMLP mlp)
    : self_attn_(std::move(self_attn)),
      mlp_(std::move(mlp)),
      tail_(fused_tail(self_attn_.parts(), mlp_.parts())) {}

mx::array DecoderBlock::operator()(
    const mx::array& x,
    const Step& step,
    Cache& cache) const {
  if (tail_) {
    return kernels::quantized_tail(
        self_attn_.attend(x, step, cache),
        x,
        *tail_);
  }
  return mlp_(self_attn_(x, step, cache));
}

} // namespace sheave
