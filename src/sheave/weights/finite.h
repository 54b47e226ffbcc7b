// Finds numbers that no weight may hold. No MLX.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace sheave {

/// Index of the first NaN or infinity among the floats that a tensor of this
/// type holds: its elements (F32, F16, BF16), or its blocks' scales (Q*),
/// counted in blocks. Nothing for other types. Reads all of the bytes.
std::optional<uint64_t> first_non_finite(
    std::string_view type,
    std::span<const uint8_t> bytes);

} // namespace sheave
