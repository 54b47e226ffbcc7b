#include "sheave/weights/model_config.h"

#include <algorithm>

#include "sheave/base/file_error.h"
#include "sheave/weights/family_defaults.h"

namespace sheave {
namespace {

[[noreturn]] void fail_config(
    const std::string& where,
    const std::string& what) {
  throw FileError(where + ": " + what);
}

void check_rope(
    const std::string& where,
    const RopeParameters& rope,
    int head_dim) {
  const int dims = static_cast<int>(head_dim * rope.partial_rotary_factor);
  if (dims < 2 || dims % 2 != 0) {
    fail_config(
        where,
        "partial_rotary_factor " + std::to_string(rope.partial_rotary_factor) +
            " rotates " + std::to_string(dims) + " of " +
            std::to_string(head_dim) + " dims, expected an even number");
  }
  if (rope.type == RopeType::kLlama3 &&
      rope.high_freq_factor <= rope.low_freq_factor) {
    fail_config(
        where,
        "key high_freq_factor is " + std::to_string(rope.high_freq_factor) +
            ", expected more than low_freq_factor, " +
            std::to_string(rope.low_freq_factor));
  }
}

} // namespace

bool knows_model_type(std::string_view model_type) {
  return family_defaults(model_type) != nullptr;
}

void check_config(const ModelConfig& config, const std::string& where) {
  if (config.num_attention_heads % config.num_key_value_heads != 0) {
    fail_config(
        where,
        "key num_key_value_heads is " +
            std::to_string(config.num_key_value_heads) +
            ", expected a divisor of num_attention_heads, " +
            std::to_string(config.num_attention_heads));
  }
  if (config.head_dim % 2 != 0) {
    fail_config(
        where,
        "key head_dim is " + std::to_string(config.head_dim) +
            ", expected an even number");
  }
  const auto layers = static_cast<size_t>(config.num_hidden_layers);
  if (config.layer_types.size() != layers) {
    fail_config(
        where,
        "key layer_types has " + std::to_string(config.layer_types.size()) +
            " entries, expected one for each of " + std::to_string(layers) +
            " layers");
  }
  const bool slides = std::find(
                          config.layer_types.begin(),
                          config.layer_types.end(),
                          LayerType::kSliding) != config.layer_types.end();
  if (slides && !config.sliding_window) {
    fail_config(
        where,
        "key sliding_window is missing, expected one for the sliding layers");
  }
  check_rope(where, config.rope, config.head_dim);
  check_rope(where, config.rope_local, config.head_dim);
}

} // namespace sheave
