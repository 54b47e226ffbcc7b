// The RoPE part of config.json. No MLX. Internal to the weights room.
#pragma once

#include "sheave/weights/json_object.h"
#include "sheave/weights/model_config.h"

namespace sheave {

/// Fills config.rope and config.rope_local: from rope_parameters, flat or per
/// layer type, or from rope_theta, rope_scaling and rope_local_base_freq. The
/// rest of the config must be there already.
void read_rope_parameters(const JsonObject& read, ModelConfig& config);

} // namespace sheave
