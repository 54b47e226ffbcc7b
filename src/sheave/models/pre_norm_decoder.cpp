#include "sheave/models/pre_norm_decoder.h"

#include <mlx/ops.h>

#include <string>

namespace sheave {

PreNormDecoder::PreNormDecoder(
    const Checkpoint& checkpoint,
    const DecoderTraits& traits)
    : config_(checkpoint.config()),
      embed_tokens_(LayerLoader(checkpoint).embedding()),
      norm_(LayerLoader(checkpoint).norm("model.norm", config_.hidden_size)),
      lm_head_(LayerLoader(checkpoint).head()) {
  const LayerLoader load(checkpoint);
  for (int layer = 0; layer < config_.num_hidden_layers; ++layer) {
    layers_.push_back(load_block(load, config_, layer, traits));
  }
}

PreNormDecoder::Block PreNormDecoder::load_block(
    const LayerLoader& load,
    const ModelConfig& config,
    int layer,
    const DecoderTraits& traits) {
  const std::string prefix = layer_prefix(layer);
  const int hidden = config.hidden_size;
  return {
      .input_layernorm = load.norm(prefix + ".input_layernorm", hidden),
      .self_attn = load.attention(prefix, layer, traits.attention),
      .post_attention_layernorm =
          load.norm(prefix + ".post_attention_layernorm", hidden),
      .mlp = load.mlp(prefix, traits.mlp_bias)};
}

mx::array PreNormDecoder::Block::operator()(
    const mx::array& x,
    const Step& step,
    Cache& cache) const {
  const mx::array h = x + self_attn(input_layernorm(x), step, cache);
  return h + mlp(post_attention_layernorm(h));
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
