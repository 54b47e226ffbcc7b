// What every layout checks and does with a step's keys and values before it
// stores them. Internal to the cache room.
#pragma once

#include <mlx/array.h>

#include <cstddef>
#include <string>

#include "sheave/cache/plain_planes.h"
#include "sheave/cache/step_layout.h"

namespace sheave {

/// Throws std::invalid_argument, its message beginning with [name], unless
/// the layout has one row that starts at `offset` and keys and values are
/// [T, Hkv, D] for its T >= 1 tokens.
void check_append(
    const std::string& name,
    const PlanesShape& shape,
    int offset,
    const StepLayout& layout,
    const mx::array& keys,
    const mx::array& values);

/// Throws likewise unless keys and values are [tokens, Hkv, D].
void check_packed(
    const std::string& name,
    const PlanesShape& shape,
    int tokens,
    const mx::array& keys,
    const mx::array& values);

/// Packed tokens of one row as the planes hold them: [T, Hkv, D] to
/// [1, Hkv, T, D].
mx::array as_block(const mx::array& packed);

/// Bytes of K and V together for `columns` columns of one row.
size_t planes_bytes(const PlanesShape& shape, int columns);

/// The dtype's name in signatures: "float16".
std::string dtype_name(mx::Dtype dtype);

} // namespace sheave
