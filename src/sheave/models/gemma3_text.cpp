// Gemma 3, text only: norms around attention and feed-forward alike, query and
// key norms, embeddings scaled by sqrt(hidden_size), five sliding layers to
// each full one with a RoPE base of their own.

#include <mlx/ops.h>

#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "sheave/models/layer_loader.h"
#include "sheave/models/model.h"
#include "sheave/models/registry.h"

namespace sheave {
namespace {

DecoderBlock load_block(const LayerLoader& load, int layer) {
  const ModelConfig& config = load.config();
  const auto norm = [&](const char* name) {
    return load.norm(layer_prefix(layer) + name, config.hidden_size);
  };
  const AttentionTraits attention = {
      .bias = config.attention_bias,
      .head_norms = true,
      .scale = 1.0F / std::sqrt(config.query_pre_attn_scalar)};
  return {
      load.attention(
          layer,
          attention,
          {.before = norm(".input_layernorm"),
           .after = norm(".post_attention_layernorm")}),
      load.mlp(
          layer,
          false,
          {.before = norm(".pre_feedforward_layernorm"),
           .after = norm(".post_feedforward_layernorm")})};
}

class Gemma3TextModel : public Model {
 public:
  explicit Gemma3TextModel(const LayerLoader& load)
      : config_(load.config()),
        embed_tokens_(load.embedding()),
        norm_(load.norm("model.norm", config_.hidden_size)),
        lm_head_(load.head()) {
    for (int layer = 0; layer < config_.num_hidden_layers; ++layer) {
      layers_.push_back(load_block(load, layer));
    }
  }

  const ModelConfig& config() const override {
    return config_;
  }

  LayerCaches make_caches(const CacheOptions& options) const override {
    return make_layer_caches(config_, options);
  }

  mx::array forward(
      const mx::array& tokens,
      const StepLayout& layout,
      LayerCaches& caches) const override {
    check_step(config_, tokens, layout, caches);
    const Step step(layout);
    const float scale = std::sqrt(static_cast<float>(config_.hidden_size));
    mx::array h = embed_tokens_(tokens) * mx::array(scale);
    for (size_t i = 0; i < layers_.size(); ++i) {
      h = layers_[i](h, step, *caches[i]);
    }
    return norm_(h);
  }

  mx::array logits(const mx::array& hidden) const override {
    mx::array raw =
        lm_head_ ? (*lm_head_)(hidden) : embed_tokens_.as_linear(hidden);
    if (!config_.final_logit_softcapping) {
      return raw;
    }
    const mx::array cap(*config_.final_logit_softcapping);
    return mx::tanh(raw / cap) * cap;
  }

 private:
  ModelConfig config_;
  Embedding embed_tokens_;
  std::vector<DecoderBlock> layers_;
  RMSNorm norm_;
  std::optional<Linear> lm_head_;
};

SHEAVE_REGISTER_MODEL("gemma3_text", Gemma3TextModel);

} // namespace
} // namespace sheave
