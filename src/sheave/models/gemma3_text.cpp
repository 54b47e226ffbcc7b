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

struct Block {
  RMSNorm input_layernorm;
  SelfAttention self_attn;
  RMSNorm post_attention_layernorm;
  RMSNorm pre_feedforward_layernorm;
  GatedMLP mlp;
  RMSNorm post_feedforward_layernorm;

  mx::array operator()(const mx::array& x, const Step& step, Cache& cache)
      const {
    const mx::array h = x + post_attention_layernorm(
                                self_attn(input_layernorm(x), step, cache));
    return h + post_feedforward_layernorm(mlp(pre_feedforward_layernorm(h)));
  }
};

Block load_block(
    const LayerLoader& load,
    const ModelConfig& config,
    int layer) {
  const std::string prefix = layer_prefix(layer);
  const auto norm = [&](const char* name) {
    return load.norm(prefix + "." + name, config.hidden_size);
  };
  const AttentionTraits attention = {
      .bias = config.attention_bias,
      .head_norms = true,
      .scale = 1.0F / std::sqrt(config.query_pre_attn_scalar)};
  return {
      .input_layernorm = norm("input_layernorm"),
      .self_attn = load.attention(prefix, layer, attention),
      .post_attention_layernorm = norm("post_attention_layernorm"),
      .pre_feedforward_layernorm = norm("pre_feedforward_layernorm"),
      .mlp = load.mlp(prefix, false),
      .post_feedforward_layernorm = norm("post_feedforward_layernorm")};
}

class Gemma3TextModel : public Model {
 public:
  explicit Gemma3TextModel(const Checkpoint& checkpoint)
      : config_(checkpoint.config()),
        embed_tokens_(LayerLoader(checkpoint).embedding()),
        norm_(LayerLoader(checkpoint).norm("model.norm", config_.hidden_size)),
        lm_head_(LayerLoader(checkpoint).head()) {
    const LayerLoader load(checkpoint);
    for (int layer = 0; layer < config_.num_hidden_layers; ++layer) {
      layers_.push_back(load_block(load, config_, layer));
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
  std::vector<Block> layers_;
  RMSNorm norm_;
  std::optional<Linear> lm_head_;
};

SHEAVE_REGISTER_MODEL("gemma3_text", Gemma3TextModel);

} // namespace
} // namespace sheave
