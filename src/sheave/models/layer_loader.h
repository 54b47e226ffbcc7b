// LayerLoader: builds nn layers from a checkpoint's tensors, by the field's
// usual names. Families use it so that a file of theirs says only what is
// particular to them.
#pragma once

#include <string>

#include "sheave/models/model.h"
#include "sheave/nn/decoder_block.h"
#include "sheave/nn/gated_mlp.h"
#include "sheave/nn/linear.h"
#include "sheave/nn/rms_norm.h"
#include "sheave/nn/self_attention.h"
#include "sheave/weights/checkpoint.h"

namespace sheave {

/// What differs between the families' attention layers.
struct AttentionTraits {
  bool bias = false;       // on q, k, v and o
  bool head_norms = false; // RMSNorm on each query and key head
  float scale = 0.0F;      // multiplies q.k; 0 means 1 / sqrt(head_dim)
};

/// Reads layers of one checkpoint, whose lifetime encloses its own. Every call
/// throws FileError, naming the tensor, when it is missing or its shape isn't
/// what the config asks for.
class LayerLoader {
 public:
  LayerLoader(const Checkpoint& checkpoint, Arithmetic arithmetic);

  const ModelConfig& config() const {
    return config_;
  }

  Linear linear(
      const std::string& name,
      int out_features,
      int in_features,
      bool bias) const;
  RMSNorm norm(const std::string& name, int dims) const;
  Embedding embedding() const;

  /// The output head, or nothing where it is tied to the embedding.
  std::optional<Linear> head() const;

  /// Layer `layer` of those named "model.layers.N.self_attn" and
  /// "model.layers.N.mlp", with the norms that surround them.
  SelfAttention
  attention(int layer, const AttentionTraits& traits, BranchNorms norms) const;
  GatedMLP mlp(int layer, bool bias, BranchNorms norms) const;

 private:
  LinearWeight packed(const std::string& name, kernels::Weight weight) const;
  Rope make_rope(LayerType type) const;

  const Checkpoint& checkpoint_;
  const ModelConfig& config_;
  bool pack_;
  Rope rope_;       // of full attention layers
  Rope rope_local_; // of sliding ones
  mutable kernels::SlabAllocator slabs_;
};

/// "model.layers.3"
std::string layer_prefix(int layer);

/// Throws std::invalid_argument unless tokens is [T] for the layout's T tokens
/// and there is one cache per layer.
void check_step(
    const ModelConfig& config,
    const mx::array& tokens,
    const StepLayout& layout,
    const LayerCaches& caches);

} // namespace sheave
