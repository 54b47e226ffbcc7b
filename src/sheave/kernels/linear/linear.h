// linear and dequantize: products with a stored weight, float or quantized.
#pragma once

#include <mlx/array.h>

#include <optional>

#include "sheave/kernels/weight.h"

namespace sheave::kernels {

/// x W^T + bias. x: [T, in_features], any float dtype; bias: [out_features].
/// Returns [T, out_features] float32. Weights are decoded to float32 a few
/// rows at a time and multiplied in float32. Each element's sum runs in an
/// order fixed by in_features alone, so its bits don't depend on T, on the
/// row's place among the T, or on the number of threads.
/// Throws std::invalid_argument when shapes don't fit or the weight's format
/// and arrays don't agree.
mx::array linear(
    const mx::array& x,
    const Weight& weight,
    const std::optional<mx::array>& bias);

/// The whole weight as float32, [out_features, in_features]. Values equal the
/// format's definition. Costs 4 bytes an element: for tests and the reference
/// path.
/// Throws as linear().
mx::array dequantize(const Weight& weight);

/// Throws std::invalid_argument, its message beginning with [op], unless the
/// weight's arrays are what weight.h says for its format.
void check_weight(const char* op, const Weight& weight);

} // namespace sheave::kernels
