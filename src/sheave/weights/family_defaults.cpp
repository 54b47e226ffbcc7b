#include "sheave/weights/family_defaults.h"

#include <algorithm>
#include <array>

namespace sheave {
namespace {

constexpr std::array kFamilies = {
    FamilyDefaults{
        .model_type = "llama",
        .vocab_size = 32000,
        .hidden_size = 4096,
        .intermediate_size = 11008,
        .num_hidden_layers = 32,
        .num_attention_heads = 32,
        .num_key_value_heads = 0,
        .head_dim = 0,
        .max_position_embeddings = 2048,
        .sliding_window = 0},
    FamilyDefaults{
        .model_type = "mistral",
        .vocab_size = 32000,
        .hidden_size = 4096,
        .intermediate_size = 14336,
        .num_hidden_layers = 32,
        .num_attention_heads = 32,
        .num_key_value_heads = 8,
        .head_dim = 0,
        .max_position_embeddings = 131072,
        .sliding_window = 4096},
    FamilyDefaults{
        .model_type = "ministral",
        .vocab_size = 32000,
        .hidden_size = 4096,
        .intermediate_size = 14336,
        .num_hidden_layers = 32,
        .num_attention_heads = 32,
        .num_key_value_heads = 8,
        .head_dim = 0,
        .max_position_embeddings = 131072,
        .sliding_window = 4096},
    FamilyDefaults{
        .model_type = "qwen3",
        .vocab_size = 151936,
        .hidden_size = 4096,
        .intermediate_size = 22016,
        .num_hidden_layers = 32,
        .num_attention_heads = 32,
        .num_key_value_heads = 32,
        .head_dim = 128,
        .max_position_embeddings = 32768,
        .sliding_window = 4096},
    FamilyDefaults{
        .model_type = "gemma3_text",
        .vocab_size = 262208,
        .hidden_size = 2304,
        .intermediate_size = 9216,
        .num_hidden_layers = 26,
        .num_attention_heads = 8,
        .num_key_value_heads = 4,
        .head_dim = 256,
        .max_position_embeddings = 131072,
        .sliding_window = 4096}};

} // namespace

const FamilyDefaults* family_defaults(std::string_view model_type) {
  const auto found = std::find_if(
      kFamilies.begin(),
      kFamilies.end(),
      [&](const FamilyDefaults& family) {
        return family.model_type == model_type;
      });
  return found == kFamilies.end() ? nullptr : &*found;
}

} // namespace sheave
