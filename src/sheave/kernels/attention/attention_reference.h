// The same attention composed of MLX operations: what runs where our kernels
// don't, and what tests compare with.
#pragma once

#include "sheave/kernels/attention/attention.h"

namespace sheave::kernels {

/// As attention(), whose checks have passed. Materializes masks and scores;
/// rows are computed one after another.
mx::array attention_reference(
    const mx::array& queries,
    const KVView& view,
    const AttentionOptions& options);

} // namespace sheave::kernels
