// embedding: rows of a stored table by id.
#pragma once

#include <mlx/array.h>

#include "sheave/kernels/weight.h"

namespace sheave::kernels {

/// ids: [T] int32. Returns [T, in_features] float32; only the rows asked for
/// are decoded. The row of an id outside the table is NaN: ids are checked
/// where they come from, and nothing outside the table is ever read.
/// Throws std::invalid_argument when ids is not [T] int32 or the weight's
/// arrays don't fit its format.
mx::array embedding(const Weight& table, const mx::array& ids);

} // namespace sheave::kernels
