#include "sheave/nn/self_attention.h"

#include <mlx/ops.h>

#include <utility>

#include "sheave/kernels/attention/attention.h"

namespace sheave {
namespace {

/// [T, H * D] to [T, H, D], normed per head where the layer has a norm.
mx::array split_heads(
    const mx::array& x,
    int heads,
    int head_dim,
    const std::optional<RMSNorm>& norm) {
  const mx::array split = mx::reshape(x, {x.shape(0), heads, head_dim});
  return norm ? (*norm)(split) : split;
}

/// The projections as one operation takes them, if all are packed.
std::optional<kernels::QKVProjections> fused_projections(
    const SelfAttentionParts& p) {
  if (p.q_proj.packed() == nullptr || p.k_proj.packed() == nullptr ||
      p.v_proj.packed() == nullptr) {
    return std::nullopt;
  }
  return kernels::QKVProjections{
      .q_proj = *p.q_proj.packed(),
      .k_proj = *p.k_proj.packed(),
      .v_proj = *p.v_proj.packed(),
      .biases = {p.q_proj.bias(), p.k_proj.bias(), p.v_proj.bias()},
      .q_norm = weight_of(p.q_norm),
      .k_norm = weight_of(p.k_norm),
      .head_dim = p.head_dim,
      .rope_pairs = p.rope.pairs()};
}

} // namespace

SelfAttention::SelfAttention(SelfAttentionParts parts)
    : parts_(std::move(parts)), fused_(fused_projections(parts_)) {}

mx::array SelfAttention::attend(
    const mx::array& x,
    const Step& step,
    Cache& cache) const {
  const auto [queries, keys, values] = project(x, step.rope_table(parts_.rope));
  return kernels::attention(
      queries,
      cache.append(keys, values, step.layout()),
      {.scale = parts_.scale, .logit_softcap = parts_.logit_softcap});
}

mx::array SelfAttention::operator()(
    const mx::array& x,
    const Step& step,
    Cache& cache) const {
  const auto& after = parts_.norms.after;
  return parts_.o_proj(
      attend(x, step, cache),
      {.output_norm = after ? &*after : nullptr, .residual = &x});
}

std::array<mx::array, 3> SelfAttention::project(
    const mx::array& x,
    const mx::array& table) const {
  const auto& p = parts_;
  if (fused_) {
    return kernels::quantized_qkv(x, *fused_, table, p.norms.before.weight());
  }
  const mx::array normed = p.norms.before(x);
  const auto heads = [&](const Linear& linear, int count, const auto& norm) {
    return split_heads(linear(normed), count, p.head_dim, norm);
  };
  return {
      p.rope(heads(p.q_proj, p.num_attention_heads, p.q_norm), table),
      p.rope(heads(p.k_proj, p.num_key_value_heads, p.k_norm), table),
      heads(p.v_proj, p.num_key_value_heads, std::optional<RMSNorm>())};
}

} // namespace sheave
