// TensorInfo: one tensor as a file's header describes it. No MLX.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sheave {

/// name: as stored. type: the format's own name, e.g. "BF16" or "Q4_K".
/// shape: outermost dimension first, also for GGUF, which stores it reversed.
/// offset: from the start of the file.
struct TensorInfo {
  std::string name;
  std::string type;
  std::vector<int64_t> shape;
  uint64_t offset = 0;
  uint64_t bytes = 0;
};

/// The number of elements; nothing if it doesn't fit 63 bits or a dimension is
/// negative.
std::optional<int64_t> checked_element_count(const std::vector<int64_t>& shape);

/// The same of a shape that a parser has let through.
int64_t element_count(const std::vector<int64_t>& shape);

/// "[49152, 576]"
std::string shape_text(const std::vector<int64_t>& shape);

/// Text from a file as it may stand in a one-line message: at most 100 bytes,
/// control and non-ASCII ones as "?".
std::string printable(std::string_view text);

/// Throws FileError, naming both tensors, where two tensors' bytes overlap.
void check_overlaps(
    const std::string& where,
    const std::vector<TensorInfo>& tensors);

} // namespace sheave
