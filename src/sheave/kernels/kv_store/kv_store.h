// store_kv: writes a step's keys and values into a cache's planes, in place.
#pragma once

#include <mlx/array.h>

#include <vector>

#include "sheave/kernels/attention/attention.h"

namespace sheave::kernels {

namespace mx = mlx::core;

/// Where consecutive packed tokens of one row go: columns [column, column +
/// num_tokens) of row `plane_row` of planes `planes`.
struct KVWrite {
  int planes = 0;
  int plane_row = 0;
  int first_token = 0;
  int num_tokens = 0;
  int column = 0;
};

/// The planes with the tokens written, rounded to the planes' dtype as
/// mx::astype rounds. planes: plain ones, [B, Hkv, S, D], of one dtype;
/// keys, values: [T, Hkv, D], any float dtype.
/// Planes whose arrays nothing else holds when the step is evaluated are
/// written in place, so pass them by move; others are copied first. Planes
/// that aren't evaluated yet are evaluated by this call.
/// Throws std::invalid_argument when shapes, dtypes or places don't fit.
std::vector<KVPlanes> store_kv(
    std::vector<KVPlanes> planes,
    const mx::array& keys,
    const mx::array& values,
    const std::vector<KVWrite>& writes);

} // namespace sheave::kernels
