// WeightFormat: the ways in which a weight's elements are stored. No MLX here:
// kernels and file readers use it alike.
#pragma once

namespace sheave::kernels {

/// How a weight's elements are stored. `kAffine` is MLX's quantization
/// (w = scale * q + bias per group); kQ* are GGUF's block formats.
enum class WeightFormat {
  kF32,
  kF16,
  kBF16,
  kAffine,
  kQ4_0,
  kQ4_1,
  kQ5_0,
  kQ5_1,
  kQ8_0,
  kQ4_K,
  kQ5_K,
  kQ6_K,
};

/// The format's usual name: "F32", "Q4_K", "affine".
const char* weight_format_name(WeightFormat format);

/// Elements and bytes of one block of a kQ* format; {1, element size} for
/// float formats. Throws std::invalid_argument for kAffine, whose layout
/// depends on bits and group_size.
struct BlockLayout {
  int elements;
  int bytes;
};
BlockLayout block_layout(WeightFormat format);

} // namespace sheave::kernels
