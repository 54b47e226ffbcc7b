#include "sheave/models/layer_loader.h"

#include <mlx/ops.h>

#include <cmath>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "sheave/models/rope_frequencies.h"

namespace sheave {

LayerLoader::LayerLoader(const Checkpoint& checkpoint)
    : checkpoint_(checkpoint), config_(checkpoint.config()) {}

Linear LayerLoader::linear(
    const std::string& name,
    int out_features,
    int in_features,
    bool bias) const {
  auto weight = checkpoint_.weight(name, out_features, in_features);
  if (!bias) {
    return Linear(std::move(weight));
  }
  return Linear(
      std::move(weight),
      checkpoint_.vector(name + ".bias", out_features));
}

RMSNorm LayerLoader::norm(const std::string& name, int dims) const {
  const mx::array weight = checkpoint_.vector(name + ".weight", dims);
  if (config_.rms_norm_offset == 0) {
    return RMSNorm(weight, config_.rms_norm_eps);
  }
  return RMSNorm(
      mx::add(weight, mx::array(config_.rms_norm_offset)),
      config_.rms_norm_eps);
}

Embedding LayerLoader::embedding() const {
  return Embedding(checkpoint_.weight(
      "model.embed_tokens",
      config_.vocab_size,
      config_.hidden_size));
}

std::optional<Linear> LayerLoader::head() const {
  if (config_.tie_word_embeddings) {
    return std::nullopt;
  }
  return linear("lm_head", config_.vocab_size, config_.hidden_size, false);
}

Rope LayerLoader::rope(int layer) const {
  const bool sliding =
      config_.layer_types[static_cast<size_t>(layer)] == LayerType::kSliding;
  RopeFrequencies frequencies = rope_frequencies(
      sliding ? config_.rope_local : config_.rope,
      config_.head_dim);
  // GGUF files of Llama 3 carry the scaling as one divisor per frequency.
  const std::string divisors_name = "rope_freqs.weight";
  if (checkpoint_.has(divisors_name)) {
    const int count = static_cast<int>(frequencies.inv_freq.size());
    mx::array divisors = checkpoint_.vector(divisors_name, count);
    divisors.eval();
    for (int i = 0; i < count; ++i) {
      frequencies.inv_freq[static_cast<size_t>(i)] /= divisors.data<float>()[i];
    }
  }
  return Rope(frequencies);
}

SelfAttention LayerLoader::attention(
    const std::string& prefix,
    int layer,
    const AttentionTraits& traits) const {
  const std::string base = prefix + ".self_attn.";
  const int hidden = config_.hidden_size;
  const int head_dim = config_.head_dim;
  const int query_dims = config_.num_attention_heads * head_dim;
  const int key_dims = config_.num_key_value_heads * head_dim;
  std::optional<RMSNorm> q_norm;
  std::optional<RMSNorm> k_norm;
  if (traits.head_norms) {
    q_norm = norm(base + "q_norm", head_dim);
    k_norm = norm(base + "k_norm", head_dim);
  }
  const float scale = traits.scale != 0
                          ? traits.scale
                          : 1.0F / std::sqrt(static_cast<float>(head_dim));
  return SelfAttention({
      .q_proj = linear(base + "q_proj", query_dims, hidden, traits.bias),
      .k_proj = linear(base + "k_proj", key_dims, hidden, traits.bias),
      .v_proj = linear(base + "v_proj", key_dims, hidden, traits.bias),
      .o_proj = linear(base + "o_proj", hidden, query_dims, traits.bias),
      .q_norm = std::move(q_norm),
      .k_norm = std::move(k_norm),
      .rope = rope(layer),
      .num_attention_heads = config_.num_attention_heads,
      .num_key_value_heads = config_.num_key_value_heads,
      .head_dim = head_dim,
      .scale = scale,
      .logit_softcap = config_.attn_logit_softcapping.value_or(0.0F),
  });
}

GatedMLP LayerLoader::mlp(const std::string& prefix, bool bias) const {
  const std::string base = prefix + ".mlp.";
  const int hidden = config_.hidden_size;
  const int inner = config_.intermediate_size;
  return {
      linear(base + "gate_proj", inner, hidden, bias),
      linear(base + "up_proj", inner, hidden, bias),
      linear(base + "down_proj", hidden, inner, bias),
      config_.hidden_act == HiddenAct::kSilu ? GateActivation::kSilu
                                             : GateActivation::kGeluTanh};
}

std::string layer_prefix(int layer) {
  return "model.layers." + std::to_string(layer);
}

void check_step(
    const ModelConfig& config,
    const mx::array& tokens,
    const StepLayout& layout,
    const LayerCaches& caches) {
  if (tokens.ndim() != 1 || tokens.shape(0) != layout.num_tokens()) {
    std::ostringstream message;
    message << "[" << config.model_type << "] expected " << layout.num_tokens()
            << " packed tokens, got an array of shape " << tokens.shape();
    throw std::invalid_argument(message.str());
  }
  if (caches.size() != config.layer_types.size()) {
    throw std::invalid_argument(
        "[" + config.model_type + "] expected " +
        std::to_string(config.layer_types.size()) + " caches, got " +
        std::to_string(caches.size()));
  }
}

} // namespace sheave
