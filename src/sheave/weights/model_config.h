// ModelConfig: the numbers that shape a model, from either world, under the
// names of Hugging Face's config.json. No MLX, no tensors.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sheave/weights/gguf.h"

namespace sheave {

/// What a layer attends to: everything, or the last sliding_window positions.
enum class LayerType { kFull, kSliding };

enum class HiddenAct { kSilu, kGeluTanh };

enum class RopeType { kDefault, kLinear, kLlama3, kYarn };

/// One kind of layer's rotary embedding; `traditional`: pairs are (2i, 2i+1).
struct RopeParameters {
  double theta = 10000;
  RopeType type = RopeType::kDefault;
  double factor = 1;
  double low_freq_factor = 1;
  double high_freq_factor = 4;
  double beta_fast = 32;
  double beta_slow = 1;
  int original_max_position_embeddings = 0;
  std::optional<double> attention_factor;
  std::optional<double> mscale;
  std::optional<double> mscale_all_dim;
  bool truncate = true;
  double partial_rotary_factor = 1;
  bool traditional = false;

  bool operator==(const RopeParameters&) const = default;
};

/// MLX's affine quantization of one weight.
struct QuantizationParameters {
  int bits = 0;
  int group_size = 0;

  bool operator==(const QuantizationParameters&) const = default;
};

/// A checkpoint's `quantization`: what holds for all weights, and per weight
/// (by its canonical name) another choice, or nullopt for "not quantized".
struct QuantizationConfig {
  QuantizationParameters all;
  std::map<std::string, std::optional<QuantizationParameters>> overrides;

  bool operator==(const QuantizationConfig&) const = default;
};

/// See above. layer_types has one entry per layer; rope serves full layers,
/// rope_local sliding ones. rms_norm_offset is added to stored norm weights:
/// 1 for Gemma's safetensors, as Hugging Face and mlx-lm alike write them; 0
/// for GGUF, which stores the sum, and for other families. GGUF files of
/// Llama 3 say kDefault in rope.type and hold the scaling as the tensor
/// rope_freqs.weight.
struct ModelConfig {
  std::string model_type;
  int vocab_size = 0;
  int hidden_size = 0;
  int intermediate_size = 0;
  int num_hidden_layers = 0;
  int num_attention_heads = 0;
  int num_key_value_heads = 0;
  int head_dim = 0;
  int max_position_embeddings = 0;
  float rms_norm_eps = 1e-6F;
  HiddenAct hidden_act = HiddenAct::kSilu;
  bool tie_word_embeddings = false;
  bool attention_bias = false;
  bool mlp_bias = false;
  std::optional<int> sliding_window;
  std::vector<LayerType> layer_types;
  float query_pre_attn_scalar = 0;
  std::optional<float> attn_logit_softcapping;
  std::optional<float> final_logit_softcapping;
  RopeParameters rope;
  RopeParameters rope_local;
  float rms_norm_offset = 0;
  std::optional<QuantizationConfig> quantization;
  std::optional<int> bos_token_id;
  std::vector<int> eos_token_id;

  bool operator==(const ModelConfig&) const = default;
};

/// Whether the config parsers know the family's keys. Of others only
/// model_type is filled in.
bool knows_model_type(std::string_view model_type);

/// From the text of a config.json, legacy and current keys alike; a text
/// model nested as text_config is taken out. Keys that are absent get the
/// family's defaults. Throws FileError, its message beginning with `where`,
/// that names the key, what was found and what was expected.
/// Source: transformers 5.24 models/*/configuration_*.py.
ModelConfig config_from_json(std::string_view text, const std::string& where);

/// From a GGUF file's metadata. Architecture "mistral3" comes as "mistral",
/// "gemma3" as "gemma3_text". Throws FileError as above.
/// Source: llama.cpp src/llama-model.cpp and src/models @ de3ff81.
ModelConfig config_from_gguf(const GgufFile& file);

/// Throws FileError unless the config's numbers fit together: heads, layer
/// types, window, rope.
void check_config(const ModelConfig& config, const std::string& where);

} // namespace sheave
