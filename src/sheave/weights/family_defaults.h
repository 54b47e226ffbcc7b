// What config.json leaves out: the values of Transformers' config classes. No
// MLX. Internal to the weights room.
// Source: transformers 5.24 models/*/configuration_*.py.
#pragma once

#include <string_view>

#include "sheave/weights/model_config.h"

namespace sheave {

/// num_key_value_heads 0: as many as num_attention_heads; head_dim 0:
/// hidden_size / num_attention_heads; sliding_window 0: none.
struct FamilyDefaults {
  std::string_view model_type;
  int vocab_size;
  int hidden_size;
  int intermediate_size;
  int num_hidden_layers;
  int num_attention_heads;
  int num_key_value_heads;
  int head_dim;
  int max_position_embeddings;
  int sliding_window;
};

/// nullptr for families whose keys aren't known.
const FamilyDefaults* family_defaults(std::string_view model_type);

} // namespace sheave
