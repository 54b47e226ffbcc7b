// What attention() demands of its arguments, checked before anything is built.
#pragma once

#include "sheave/kernels/attention/attention.h"

namespace sheave::kernels {

/// Throws std::invalid_argument when shapes, dtypes or ranges don't fit.
void check_attention(
    const mx::array& queries,
    const KVView& view,
    const AttentionOptions& options);

} // namespace sheave::kernels
