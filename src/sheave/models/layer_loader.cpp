#include "sheave/models/layer_loader.h"

#include <mlx/ops.h>

#include <cmath>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "sheave/kernels/runtime.h"
#include "sheave/models/rope_frequencies.h"

namespace sheave {

LayerLoader::LayerLoader(const Checkpoint& checkpoint, Arithmetic arithmetic)
    : checkpoint_(checkpoint),
      config_(checkpoint.config()),
      pack_(arithmetic == Arithmetic::kFast && !kernels::use_reference()),
      rope_(make_rope(LayerType::kFull)),
      rope_local_(make_rope(LayerType::kSliding)) {}

// The weight, packed if that is wanted and possible; then its file's pages
// need not stay in memory.
LinearWeight LayerLoader::packed(
    const std::string& name,
    kernels::Weight weight) const {
  if (!pack_ || !kernels::packable(weight)) {
    return weight;
  }
  kernels::PackedWeight result = kernels::pack(weight, slabs_);
  checkpoint_.release_pages(name);
  return result;
}

Linear LayerLoader::linear(
    const std::string& name,
    int out_features,
    int in_features,
    bool bias) const {
  LinearWeight weight =
      packed(name, checkpoint_.weight(name, out_features, in_features));
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
  const std::string name = "model.embed_tokens";
  kernels::Weight table =
      checkpoint_.weight(name, config_.vocab_size, config_.hidden_size);
  if (!config_.tie_word_embeddings) {
    return Embedding(std::move(table));
  }
  LinearWeight head = packed(name, table);
  if (auto* packed_head = std::get_if<kernels::PackedWeight>(&head)) {
    return Embedding(std::move(table), std::move(*packed_head));
  }
  return Embedding(std::move(table));
}

std::optional<Linear> LayerLoader::head() const {
  if (config_.tie_word_embeddings) {
    return std::nullopt;
  }
  return linear("lm_head", config_.vocab_size, config_.hidden_size, false);
}

Rope LayerLoader::make_rope(LayerType type) const {
  RopeFrequencies frequencies = rope_frequencies(
      type == LayerType::kSliding ? config_.rope_local : config_.rope,
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
    int layer,
    const AttentionTraits& traits,
    BranchNorms norms) const {
  const std::string base = layer_prefix(layer) + ".self_attn.";
  const bool sliding =
      config_.layer_types[static_cast<size_t>(layer)] == LayerType::kSliding;
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
      .norms = std::move(norms),
      .q_proj = linear(base + "q_proj", query_dims, hidden, traits.bias),
      .k_proj = linear(base + "k_proj", key_dims, hidden, traits.bias),
      .v_proj = linear(base + "v_proj", key_dims, hidden, traits.bias),
      .o_proj = linear(base + "o_proj", hidden, query_dims, traits.bias),
      .q_norm = std::move(q_norm),
      .k_norm = std::move(k_norm),
      .rope = sliding ? rope_local_ : rope_,
      .num_attention_heads = config_.num_attention_heads,
      .num_key_value_heads = config_.num_key_value_heads,
      .head_dim = head_dim,
      .scale = scale,
      .logit_softcap = config_.attn_logit_softcapping.value_or(0.0F),
  });
}

GatedMLP LayerLoader::mlp(int layer, bool bias, BranchNorms norms) const {
  const std::string base = layer_prefix(layer) + ".mlp.";
  const int hidden = config_.hidden_size;
  const int inner = config_.intermediate_size;
  return GatedMLP(
      {.norms = std::move(norms),
       .gate_proj = linear(base + "gate_proj", inner, hidden, bias),
       .up_proj = linear(base + "up_proj", inner, hidden, bias),
       .down_proj = linear(base + "down_proj", hidden, inner, bias),
       .gate = config_.hidden_act == HiddenAct::kSilu
                   ? kernels::GateKind::kSwiglu
                   : kernels::GateKind::kGegluTanh});
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
