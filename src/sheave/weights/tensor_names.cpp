#include "sheave/weights/tensor_names.h"

#include <map>

namespace sheave {
namespace {

using NameMap = std::map<std::string_view, std::string_view>;

const NameMap& layer_names() {
  static const NameMap names = {
      {"attn_q", "self_attn.q_proj"},
      {"attn_k", "self_attn.k_proj"},
      {"attn_v", "self_attn.v_proj"},
      {"attn_output", "self_attn.o_proj"},
      {"attn_q_norm", "self_attn.q_norm"},
      {"attn_k_norm", "self_attn.k_norm"},
      {"attn_norm", "input_layernorm"},
      {"ffn_gate", "mlp.gate_proj"},
      {"ffn_up", "mlp.up_proj"},
      {"ffn_down", "mlp.down_proj"},
      {"ffn_norm", "post_attention_layernorm"},
  };
  return names;
}

/// Gemma norms attention's output and the feed-forward's as well.
const NameMap& gemma_layer_names() {
  static const NameMap names = {
      {"ffn_norm", "pre_feedforward_layernorm"},
      {"post_attention_norm", "post_attention_layernorm"},
      {"post_ffw_norm", "post_feedforward_layernorm"},
  };
  return names;
}

bool take_prefix(std::string_view& name, std::string_view prefix) {
  if (!name.starts_with(prefix)) {
    return false;
  }
  name.remove_prefix(prefix.size());
  return true;
}

} // namespace

std::string canonical_name(std::string_view name) {
  if (take_prefix(name, "model.language_model.")) {
    return "model." + std::string(name);
  }
  take_prefix(name, "language_model.");
  return std::string(name);
}

std::string canonical_gguf_name(
    std::string_view name,
    std::string_view model_type) {
  const std::string_view whole = name;
  const size_t dot = name.rfind('.');
  if (dot == std::string_view::npos) {
    return std::string(whole);
  }
  const std::string suffix(name.substr(dot)); // ".weight" or ".bias"
  name = name.substr(0, dot);
  if (name == "token_embd") {
    return "model.embed_tokens" + suffix;
  }
  if (name == "output_norm") {
    return "model.norm" + suffix;
  }
  if (name == "output") {
    return "lm_head" + suffix;
  }
  if (!take_prefix(name, "blk.")) {
    return std::string(whole);
  }
  const size_t end = name.find('.');
  if (end == std::string_view::npos) {
    return std::string(whole);
  }
  const std::string layer(name.substr(0, end));
  const std::string_view part = name.substr(end + 1);
  const auto& gemma = gemma_layer_names();
  const auto& common = layer_names();
  auto found = gemma.find(part);
  if (model_type != "gemma3_text" || found == gemma.end()) {
    found = common.find(part);
    if (found == common.end()) {
      return std::string(whole);
    }
  }
  return "model.layers." + layer + "." + std::string(found->second) + suffix;
}

} // namespace sheave
