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

} // namespace

SelfAttention::SelfAttention(SelfAttentionParts parts)
    : parts_(std::move(parts)) {}

mx::array SelfAttention::operator()(
    const mx::array& x,
    const Step& step,
    Cache& cache) const {
  const auto& p = parts_;
  const mx::array queries = p.rope(
      split_heads(p.q_proj(x), p.num_attention_heads, p.head_dim, p.q_norm),
      step.positions);
  const mx::array keys = p.rope(
      split_heads(p.k_proj(x), p.num_key_value_heads, p.head_dim, p.k_norm),
      step.positions);
  const mx::array values =
      split_heads(p.v_proj(x), p.num_key_value_heads, p.head_dim, std::nullopt);
  const mx::array attended = kernels::attention(
      queries,
      cache.append(keys, values, step.layout),
      {.scale = p.scale, .logit_softcap = p.logit_softcap});
  return p.o_proj(attended);
}

} // namespace sheave
