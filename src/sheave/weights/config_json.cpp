// config.json to ModelConfig.

#include <algorithm>

#include "sheave/weights/config_rope.h"
#include "sheave/weights/family_defaults.h"
#include "sheave/weights/json_object.h"
#include "sheave/weights/model_config.h"
#include "sheave/weights/model_limits.h"
#include "sheave/weights/tensor_info.h"
#include "sheave/weights/tensor_names.h"

namespace sheave {
namespace {

using Json = nlohmann::json;

/// An integer that an explicit null turns off; `fallback` if it is absent.
std::optional<int> nullable(
    const JsonObject& read,
    const std::string& key,
    IntegerRange range,
    int fallback) {
  if (read.is_null(key)) {
    return std::nullopt;
  }
  const auto value = read.integer(key, range);
  return value ? value : fallback == 0 ? std::nullopt : std::optional(fallback);
}

void read_head_dim(
    const JsonObject& read,
    const FamilyDefaults& family,
    ModelConfig& config) {
  const auto head_dim = read.integer("head_dim", kHeadDim);
  if (head_dim || family.head_dim != 0) {
    config.head_dim = head_dim.value_or(family.head_dim);
    return;
  }
  const int heads = config.num_attention_heads;
  config.head_dim = config.hidden_size / heads;
  if (config.hidden_size % heads != 0) {
    read.fail(
        "hidden_size",
        "a multiple of num_attention_heads, " + std::to_string(heads));
  }
  if (config.head_dim < kHeadDim.low || config.head_dim > kHeadDim.high) {
    read.fail(
        "hidden_size",
        std::to_string(heads) + " times " + range_text(kHeadDim));
  }
}

void read_shape(
    const JsonObject& read,
    const FamilyDefaults& family,
    ModelConfig& config) {
  config.vocab_size =
      read.integer("vocab_size", kVocabulary).value_or(family.vocab_size);
  config.hidden_size =
      read.integer("hidden_size", kWidth).value_or(family.hidden_size);
  config.intermediate_size = read.integer("intermediate_size", kWidth)
                                 .value_or(family.intermediate_size);
  config.num_hidden_layers = read.integer("num_hidden_layers", kLayers)
                                 .value_or(family.num_hidden_layers);
  config.num_attention_heads = read.integer("num_attention_heads", kHeads)
                                   .value_or(family.num_attention_heads);
  config.num_key_value_heads =
      nullable(read, "num_key_value_heads", kHeads, family.num_key_value_heads)
          .value_or(config.num_attention_heads);
  read_head_dim(read, family, config);
  config.max_position_embeddings =
      read.integer("max_position_embeddings", kContext)
          .value_or(family.max_position_embeddings);
  config.rms_norm_eps =
      static_cast<float>(read.number("rms_norm_eps", kEpsilon).value_or(1e-6));
}

HiddenAct read_activation(const JsonObject& read, bool gemma) {
  // Gemma says hidden_activation and may leave a misleading hidden_act beside
  // it.
  const std::string key = gemma ? "hidden_activation" : "hidden_act";
  const auto name =
      read.string(key).value_or(gemma ? "gelu_pytorch_tanh" : "silu");
  if (name == "silu" || name == "swish") {
    return HiddenAct::kSilu;
  }
  if (name == "gelu_pytorch_tanh") {
    return HiddenAct::kGeluTanh;
  }
  read.fail(key, "silu or gelu_pytorch_tanh");
}

/// A cap that null and 0 turn off.
std::optional<float> read_cap(const JsonObject& read, const std::string& key) {
  const auto value = read.number(key, {0, kRopeFactor.high});
  return value.value_or(0) == 0 ? std::nullopt
                                : std::optional(static_cast<float>(*value));
}

void read_gemma3(const JsonObject& read, ModelConfig& config) {
  config.query_pre_attn_scalar = static_cast<float>(
      read.number("query_pre_attn_scalar", kRopeFactor).value_or(256));
  config.attn_logit_softcapping = read_cap(read, "attn_logit_softcapping");
  config.final_logit_softcapping = read_cap(read, "final_logit_softcapping");
  config.rms_norm_offset = 1;
  if (read.boolean("use_bidirectional_attention").value_or(false)) {
    read.fail("use_bidirectional_attention", "false");
  }
}

void read_tokens(const JsonObject& read, ModelConfig& config) {
  constexpr IntegerRange kTokens = {0, kVocabulary.high};
  config.bos_token_id = read.integer("bos_token_id", kTokens);
  const Json* eos = read.find("eos_token_id");
  if (eos == nullptr || !eos->is_array()) {
    const auto token = read.integer("eos_token_id", kTokens);
    config.eos_token_id.assign(token ? 1 : 0, token.value_or(0));
    return;
  }
  for (const Json& token : *eos) {
    if (!token.is_number_unsigned() || token > kTokens.high) {
      read.fail("eos_token_id", "a token id or a list of them");
    }
    config.eos_token_id.push_back(token.get<int>());
  }
}

std::vector<LayerType> listed_layer_types(const JsonObject& read) {
  std::vector<LayerType> types;
  const Json* list = read.find("layer_types");
  if (list == nullptr) {
    return types;
  }
  const bool sized = list->is_array() && list->size() <= kLayers.high;
  if (sized) {
    for (const Json& item : *list) {
      if (item == "full_attention") {
        types.push_back(LayerType::kFull);
      } else if (item == "sliding_attention") {
        types.push_back(LayerType::kSliding);
      }
    }
  }
  if (!sized || types.size() != list->size()) {
    read.fail("layer_types", "a list of full_attention and sliding_attention");
  }
  return types;
}

/// Which layers slide, where layer_types doesn't say it.
std::vector<LayerType> derived_layer_types(
    const JsonObject& read,
    const ModelConfig& config) {
  const int layers = config.num_hidden_layers;
  std::vector<LayerType> types(static_cast<size_t>(layers), LayerType::kFull);
  if (!config.sliding_window) {
    return types;
  }
  const std::string& type = config.model_type;
  const int pattern =
      read.integer("sliding_window_pattern", kLayers).value_or(6);
  const int first_sliding =
      read.integer("max_window_layers", {0, kLayers.high}).value_or(28);
  for (int i = 0; i < layers; ++i) {
    const bool slides = type == "gemma3_text" ? (i + 1) % pattern != 0
                        : type == "qwen3"     ? i >= first_sliding
                                              : true;
    if (slides) {
      types[static_cast<size_t>(i)] = LayerType::kSliding;
    }
  }
  return types;
}

void read_layers(
    const JsonObject& read,
    const FamilyDefaults& family,
    ModelConfig& config) {
  const std::string& type = config.model_type;
  config.layer_types = listed_layer_types(read);
  // A llama slides only where it lists its layers, as mlx-lm has it.
  const bool may_slide =
      type == "llama"   ? !config.layer_types.empty()
      : type == "qwen3" ? read.boolean("use_sliding_window").value_or(false)
                        : true;
  if (may_slide) {
    config.sliding_window =
        nullable(read, "sliding_window", kContext, family.sliding_window);
  }
  // Mistral ignores layer_types: with a window every layer slides.
  if (config.layer_types.empty() || type == "mistral") {
    config.layer_types = derived_layer_types(read, config);
  }
  if (config.layer_types.size() !=
      static_cast<size_t>(config.num_hidden_layers)) {
    read.fail(
        "layer_types",
        "one entry for each of " + std::to_string(config.num_hidden_layers) +
            " layers");
  }
}

QuantizationParameters read_quantization(const JsonObject& read) {
  constexpr IntegerRange kBits = {2, 8};
  constexpr IntegerRange kGroup = {16, 128};
  if (read.string("mode").value_or("affine") != "affine") {
    read.fail("mode", "affine (no other mode is supported)");
  }
  const int bits = read.integer("bits", kBits).value_or(0);
  const int group = read.integer("group_size", kGroup).value_or(0);
  if (bits == 0 || bits == 7) {
    read.fail("bits", "2, 3, 4, 5, 6 or 8");
  }
  if (group != 16 && group != 32 && group != 64 && group != 128) {
    read.fail("group_size", "16, 32, 64 or 128");
  }
  return {.bits = bits, .group_size = group};
}

/// `quantization` as mlx-lm writes it: bits and group_size for all, and by
/// weight name an object of its own, or false.
std::optional<QuantizationConfig> read_quantizations(const JsonObject& read) {
  const bool mlx = read.find("quantization") != nullptr;
  const auto section =
      read.object(mlx ? "quantization" : "quantization_config");
  if (!section) {
    return std::nullopt;
  }
  if (!mlx && section->find("quant_method") != nullptr) {
    section->fail("quant_method", "MLX's quantization or none");
  }
  QuantizationConfig result;
  result.all = read_quantization(*section);
  for (const auto& [name, value] : section->json().items()) {
    if (value.is_object()) {
      if (const auto own = section->object(name)) {
        result.overrides[canonical_name(name)] = read_quantization(*own);
      }
    } else if (value.is_boolean() && !value.get<bool>()) {
      result.overrides[canonical_name(name)] = std::nullopt;
    }
  }
  return result;
}

/// The text model's part of the whole: text_config with what only the outer
/// object says of it, or the whole.
Json text_part(const Json& whole, const std::string& where) {
  const JsonObject top(whole, where);
  if (!top.object("text_config")) {
    return whole;
  }
  Json part = whole["text_config"];
  for (const char* key :
       {"quantization",
        "quantization_config",
        "tie_word_embeddings",
        "bos_token_id",
        "eos_token_id"}) {
    if (top.find(key) != nullptr && !part.contains(key)) {
      part[key] = whole[key];
    }
  }
  if (!part.contains("model_type") && whole.contains("model_type")) {
    const Json& type = whole["model_type"];
    part["model_type"] = type == "gemma3" ? Json("gemma3_text") : type;
  }
  return part;
}

} // namespace

ModelConfig config_from_json(std::string_view text, const std::string& where) {
  const Json json = text_part(parse_json_object(text, where), where);
  const JsonObject read(json, where);
  ModelConfig config;
  config.model_type = read.string("model_type").value_or("");
  if (config.model_type.empty() ||
      config.model_type != printable(config.model_type)) {
    read.fail("model_type", "the name of an architecture");
  }
  const FamilyDefaults* family = family_defaults(config.model_type);
  if (family == nullptr) {
    return config;
  }
  const bool gemma = config.model_type == "gemma3_text";
  read_shape(read, *family, config);
  config.hidden_act = read_activation(read, gemma);
  config.tie_word_embeddings =
      read.boolean("tie_word_embeddings").value_or(gemma);
  config.attention_bias = read.boolean("attention_bias").value_or(false);
  config.mlp_bias = read.boolean("mlp_bias").value_or(false);
  if (gemma) {
    read_gemma3(read, config);
  }
  read_tokens(read, config);
  read_layers(read, *family, config);
  read_rope_parameters(read, config);
  config.quantization = read_quantizations(read);
  check_config(config, where);
  return config;
}

} // namespace sheave
