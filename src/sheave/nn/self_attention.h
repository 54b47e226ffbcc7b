// SelfAttention: projections, optional query and key norms, RoPE, the cache,
// attention, output projection. Which of these a family has is said by what
// the caller passes; no family is named here.
#pragma once

#include <mlx/array.h>

#include <optional>

#include "sheave/cache/cache.h"
#include "sheave/nn/linear.h"
#include "sheave/nn/rms_norm.h"
#include "sheave/nn/rope.h"
#include "sheave/nn/step.h"

namespace sheave {

/// The parts of one attention layer. q_norm and k_norm work per head.
struct SelfAttentionParts {
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
  /// `cache` and returns [T, hidden_size].
  mx::array operator()(const mx::array& x, const Step& step, Cache& cache)
      const;

 private:
  SelfAttentionParts parts_;
};

} // namespace sheave
