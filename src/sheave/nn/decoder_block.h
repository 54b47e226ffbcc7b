// DecoderBlock: a layer of a dense decoder: attention, then feed-forward, each
// a residual branch.
#pragma once

#include <mlx/array.h>

#include <optional>

#include "sheave/nn/gated_mlp.h"
#include "sheave/nn/self_attention.h"

namespace sheave {

/// One layer over packed tokens. Where all its weights are packed, what
/// follows attention is one operation.
class DecoderBlock {
 public:
  DecoderBlock(SelfAttention self_attn, GatedMLP mlp);

  /// x: [T, hidden_size] float32. Appends the step's keys and values to
  /// `cache` and returns [T, hidden_size].
  mx::array operator()(const mx::array& x, const Step& step, Cache& cache)
      const;

 private:
  SelfAttention self_attn_;
  GatedMLP mlp_;
  std::optional<kernels::LayerTail> tail_;
};

} // namespace sheave
