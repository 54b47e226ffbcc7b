// PreNormDecoder: the dense decoder that llama and its kin share: norm,
// attention, residual, norm, feed-forward, residual; a final norm and a head.
// A family says through its traits what its attention and MLP look like.
#pragma once

#include <optional>
#include <vector>

#include "sheave/models/layer_loader.h"
#include "sheave/models/model.h"

namespace sheave {

/// What differs between the families of this shape.
struct DecoderTraits {
  AttentionTraits attention;
  bool mlp_bias = false;
};

/// See Model.
class PreNormDecoder : public Model {
 public:
  PreNormDecoder(const LayerLoader& load, const DecoderTraits& traits);

  const ModelConfig& config() const override {
    return config_;
  }
  LayerCaches make_caches(const CacheOptions& options) const override {
    return make_layer_caches(config_, options);
  }
  mx::array forward(
      const mx::array& tokens,
      const StepLayout& layout,
      LayerCaches& caches) const override;
  mx::array logits(const mx::array& hidden) const override;

 private:
  ModelConfig config_;
  Embedding embed_tokens_;
  std::vector<DecoderBlock> layers_;
  RMSNorm norm_;
  std::optional<Linear> lm_head_;
};

} // namespace sheave
