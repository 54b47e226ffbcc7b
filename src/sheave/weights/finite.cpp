#include "sheave/weights/finite.h"

#include <array>
#include <cstring>

namespace sheave {
namespace {

/// Where a block type keeps its half-precision scales.
struct BlockScales {
  std::string_view type;
  uint64_t block_bytes;
  int first;  // offset of a scale
  int second; // of another, or the same again
};

constexpr std::array kBlockScales = {
    BlockScales{"Q4_0", 18, 0, 0},
    BlockScales{"Q4_1", 20, 0, 2},
    BlockScales{"Q5_0", 22, 0, 0},
    BlockScales{"Q5_1", 24, 0, 2},
    BlockScales{"Q8_0", 34, 0, 0},
    BlockScales{"Q4_K", 144, 0, 2},
    BlockScales{"Q5_K", 176, 0, 2},
    BlockScales{"Q6_K", 210, 208, 208},
};

constexpr uint16_t kHalfExponent = 0x7C00;
constexpr uint16_t kBfloatExponent = 0x7F80;
constexpr uint32_t kFloatExponent = 0x7F800000;

template <typename T>
T load(const uint8_t* p) {
  T value;
  std::memcpy(&value, p, sizeof(value));
  return value;
}

template <typename T>
bool is_finite(const uint8_t* p, T exponent) {
  return (load<T>(p) & exponent) != exponent;
}

// Whole chunks are looked through without a branch, which compilers turn into
// vector code; the chunk that has the culprit, once more one by one.
template <typename T>
std::optional<uint64_t> first_in_floats(
    std::span<const uint8_t> bytes,
    T exponent) {
  constexpr uint64_t kChunk = 1024;
  const uint64_t count = bytes.size() / sizeof(T);
  const uint8_t* data = bytes.data();
  for (uint64_t begin = 0; begin < count; begin += kChunk) {
    if (count - begin >= kChunk) {
      T bad = 0;
      for (uint64_t i = 0; i < kChunk; ++i) {
        const T value = load<T>(data + (begin + i) * sizeof(T));
        bad |= static_cast<T>((value & exponent) == exponent);
      }
      if (bad == 0) {
        continue;
      }
    }
    for (uint64_t i = begin; i < count && i < begin + kChunk; ++i) {
      if (!is_finite(data + i * sizeof(T), exponent)) {
        return i;
      }
    }
  }
  return std::nullopt;
}

std::optional<uint64_t> first_in_blocks(
    std::span<const uint8_t> bytes,
    const BlockScales& scales) {
  const uint64_t count = bytes.size() / scales.block_bytes;
  for (uint64_t i = 0; i < count; ++i) {
    const uint8_t* block = bytes.data() + i * scales.block_bytes;
    if (!is_finite(block + scales.first, kHalfExponent) ||
        !is_finite(block + scales.second, kHalfExponent)) {
      return i;
    }
  }
  return std::nullopt;
}

} // namespace

std::optional<uint64_t> first_non_finite(
    std::string_view type,
    std::span<const uint8_t> bytes) {
  if (type == "F32") {
    return first_in_floats<uint32_t>(bytes, kFloatExponent);
  }
  if (type == "F16") {
    return first_in_floats<uint16_t>(bytes, kHalfExponent);
  }
  if (type == "BF16") {
    return first_in_floats<uint16_t>(bytes, kBfloatExponent);
  }
  for (const BlockScales& scales : kBlockScales) {
    if (scales.type == type) {
      return first_in_blocks(bytes, scales);
    }
  }
  return std::nullopt;
}

} // namespace sheave
