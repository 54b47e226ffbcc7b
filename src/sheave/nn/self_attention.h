// SelfAttention: projections, optional query and key norms, RoPE, the cache,
// attention, output projection, as a residual branch. Which of these a family
// has is said by what the caller passes; no family is named here.
#pragma once

#include <mlx/array.h>

#include <array>
#include <optional>

#include "sheave/cache/cache.h"
#include "sheave/kernels/quantized_linear/quantized_linear.h"
#include "sheave/nn/linear.h"
#include "sheave/nn/residual_branch.h"
#include "sheave/nn/rms_norm.h"
#include "sheave/nn/rope.h"
#include "sheave/nn/step.h"

namespace sheave {

/// The parts of one attention layer. q_norm and k_norm work per head.
struct SelfAttentionParts {
  BranchNorms norms;
  Linear q_proj;
  Linear k_proj;
  Linear v_proj;
  Linear o_proj;
  std::optional<RMSNorm> q_norm;
  std::optional<RMSNorm> k_norm;
  Rope rope;
  int num_attention_heads;
  int num_key_value_heads;
  int head_dim;
  float scale;
  float logit_softcap = 0.0F;
};

/// One attention layer over packed tokens.
class SelfAttention {
 public:
  explicit SelfAttention(SelfAttentionParts parts);

  /// x: [T, hidden_size] float32. Appends the step's keys and values to
  /// `cache` and returns x plus the branch, [T, hidden_size].
  mx::array operator()(const mx::array& x, const Step& step, Cache& cache)
      const;

  /// The same up to the output projection: [T, Hq * D].
  mx::array attend(const mx::array& x, const Step& step, Cache& cache) const;

  const SelfAttentionParts& parts() const {
    return parts_;
  }

 private:
  /// Queries, keys and values of before(x), [T, H, D] each.
  std::array<mx::array, 3> project(const mx::array& x, const mx::array& table)
      const;

  SelfAttentionParts parts_;
  std::optional<kernels::QKVProjections> fused_;
};

} // namespace sheave
