#include "sheave/models/pre_norm_decoder.h"

#include <string>

namespace sheave {

PreNormDecoder::PreNormDecoder(
    const LayerLoader& load,
    const DecoderTraits& traits)
    : config_(load.config()),
      embed_tokens_(load.embedding()),
      norm_(load.norm("model.norm", config_.hidden_size)),
      lm_head_(load.head()) {
  for (int layer = 0; layer < config_.num_hidden_layers; ++layer) {
    const auto norms = [&](const char* name) {
      return BranchNorms{
          .before = load.norm(layer_prefix(layer) + name, config_.hidden_size),
          .after = std::nullopt};
    };
    layers_.emplace_back(
        load.attention(layer, traits.attention, norms(".input_layernorm")),
        load.mlp(layer, traits.mlp_bias, norms(".post_attention_layernorm")));
  }
}

mx::array PreNormDecoder::forward(
    const mx::array& tokens,
    const StepLayout& layout,
    LayerCaches& caches) const {
  check_step(config_, tokens, layout, caches);
  const Step step(layout);
  mx::array h = embed_tokens_(tokens);
  for (size_t i = 0; i < layers_.size(); ++i) {
    h = layers_[i](h, step, *caches[i]);
  }
  return norm_(h);
}

mx::array PreNormDecoder::logits(const mx::array& hidden) const {
  return lm_head_ ? (*lm_head_)(hidden) : embed_tokens_.as_linear(hidden);
}

} // namespace sheave
