// From a checkpoint's RoPE parameters to the frequencies that layers apply.
#pragma once

#include "sheave/nn/rope.h"
#include "sheave/weights/model_config.h"

namespace sheave {

/// The frequencies of one layer kind, for heads of `head_dim`.
/// Source: Transformers modeling_rope_utils (default, linear, llama3, yarn);
/// yarn: Peng et al. 2023, section 3.
RopeFrequencies rope_frequencies(
    const RopeParameters& parameters,
    int head_dim);

} // namespace sheave
