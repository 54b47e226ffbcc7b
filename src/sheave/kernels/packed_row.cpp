#include "sheave/kernels/packed_row.h"

#include <cstring>

#include "sheave/base/check.h"

namespace sheave::kernels {
namespace {

void append(std::vector<uint8_t>& to, const uint8_t* bytes, size_t count) {
  to.insert(to.end(), bytes, bytes + count);
}

/// The fifth bits of 32 quants: bit i of a little-endian word is quant i's.
void add_fifth_bits(const uint8_t* high, uint8_t* quants) {
  for (int i = 0; i < 32; ++i) {
    quants[i] |= static_cast<uint8_t>((high[i / 8] >> (i % 8) & 1) << 4);
  }
}

void split_nibbles(const uint8_t* packed, uint8_t* quants) {
  for (int i = 0; i < 16; ++i) {
    quants[i] = packed[i] & 15;
    quants[i + 16] = packed[i] >> 4;
  }
}

/// Which parts a block of 32 nibbles has beside its scale.
struct SmallBlock {
  bool has_bias;
  bool has_fifth;
};

void read_small_block(
    const SmallBlock& format,
    const uint8_t* block,
    uint8_t* quants,
    PackedRow& out) {
  append(out.scales, block, 2);
  block += 2;
  if (format.has_bias) {
    append(out.biases, block, 2);
    block += 2;
  }
  const uint8_t* high = block;
  block += format.has_fifth ? 4 : 0;
  split_nibbles(block, quants);
  if (format.has_fifth) {
    add_fifth_bits(high, quants);
  }
}

void read_q8_0(const uint8_t* block, uint8_t* quants, PackedRow& out) {
  append(out.scales, block, 2);
  for (int i = 0; i < 32; ++i) {
    quants[i] = block[2 + i] ^ 0x80; // signed to 0..255
  }
}

/// The eight 6-bit scales and minimums of Q4_K and Q5_K in 12 bytes: four
/// whole ones each, then four split between low and high bits.
void read_k_scales(const uint8_t* packed, PackedRow& out) {
  uint8_t scales[8];
  uint8_t mins[8];
  for (int i = 0; i < 4; ++i) {
    scales[i] = packed[i] & 63;
    mins[i] = packed[i + 4] & 63;
    scales[i + 4] =
        static_cast<uint8_t>((packed[i + 8] & 15) | (packed[i] >> 6) << 4);
    mins[i + 4] =
        static_cast<uint8_t>((packed[i + 8] >> 4) | (packed[i + 4] >> 6) << 4);
  }
  append(out.scales, scales, 8);
  append(out.biases, mins, 8);
}

/// Q4_K, and Q5_K where `high` holds the fifth bits.
void read_k_block(
    const uint8_t* block,
    const uint8_t* high,
    const uint8_t* packed,
    uint8_t* quants,
    PackedRow& out) {
  append(out.super_scales, block, 2);
  const uint8_t negative_min[2] = {
      block[2],
      static_cast<uint8_t>(block[3] ^ 0x80)};
  append(out.super_biases, negative_min, 2);
  read_k_scales(block + 4, out);
  for (int group = 0; group < 8; ++group) {
    const uint8_t* bytes = packed + group / 2 * 32;
    for (int i = 0; i < 32; ++i) {
      const int low = bytes[i] >> (group % 2 * 4) & 15;
      const int fifth = high == nullptr ? 0 : high[i] >> group & 1;
      quants[32 * group + i] = static_cast<uint8_t>(low | fifth << 4);
    }
  }
}

void read_q6_k(const uint8_t* block, uint8_t* quants, PackedRow& out) {
  append(out.scales, block + 192, 16);
  append(out.super_scales, block + 208, 2);
  for (int group = 0; group < 8; ++group) { // 32 quants each
    const int half = group / 4;
    const int part = group % 4;
    const uint8_t* low = block + 64 * half + 32 * (part % 2);
    const uint8_t* high = block + 128 + 32 * half;
    for (int i = 0; i < 32; ++i) {
      const int low_bits = low[i] >> (4 * (part / 2)) & 15;
      const int high_bits = high[i] >> (2 * part) & 3;
      quants[32 * group + i] = static_cast<uint8_t>(low_bits | high_bits << 4);
    }
  }
}

size_t float_size(FloatType type) {
  return type == FloatType::kF32 ? 4 : 2;
}

/// Quants are packed from the low bits up, eight of them in `bits` bytes.
void read_affine(const WeightRows& weight, int row, PackedRow& out) {
  const auto r = static_cast<size_t>(row);
  const auto bits = static_cast<size_t>(weight.bits);
  const uint8_t* packed = weight.data + r * weight.row_bytes;
  const uint64_t mask = (uint64_t{1} << bits) - 1;
  for (size_t i = 0; i < out.quants.size(); i += 8) {
    uint64_t word = 0;
    std::memcpy(&word, packed + i / 8 * bits, bits);
    for (size_t j = 0; j < 8; ++j) {
      out.quants[i + j] = static_cast<uint8_t>(word >> (j * bits) & mask);
    }
  }
  const size_t bytes =
      static_cast<size_t>(weight.in_features / weight.group_size) *
      float_size(weight.scale_type);
  append(
      out.scales,
      static_cast<const uint8_t*>(weight.scales) + r * bytes,
      bytes);
  append(
      out.biases,
      static_cast<const uint8_t*>(weight.biases) + r * bytes,
      bytes);
}

void read_block(
    WeightFormat format,
    const uint8_t* block,
    uint8_t* quants,
    PackedRow& out) {
  switch (format) {
    case WeightFormat::kQ4_0:
      read_small_block({false, false}, block, quants, out);
      break;
    case WeightFormat::kQ4_1:
      read_small_block({true, false}, block, quants, out);
      break;
    case WeightFormat::kQ5_0:
      read_small_block({false, true}, block, quants, out);
      break;
    case WeightFormat::kQ5_1:
      read_small_block({true, true}, block, quants, out);
      break;
    case WeightFormat::kQ8_0:
      read_q8_0(block, quants, out);
      break;
    case WeightFormat::kQ4_K:
      read_k_block(block, nullptr, block + 16, quants, out);
      break;
    case WeightFormat::kQ5_K:
      read_k_block(block, block + 16, block + 48, quants, out);
      break;
    case WeightFormat::kQ6_K:
      read_q6_k(block, quants, out);
      break;
    default:
      SHEAVE_CHECK(false, "only quantized formats are packed");
  }
}

} // namespace

void read_packed_row(const WeightRows& weight, int row, PackedRow& out) {
  out.quants.resize(static_cast<size_t>(weight.in_features));
  out.scales.clear();
  out.biases.clear();
  out.super_scales.clear();
  out.super_biases.clear();
  if (weight.format == WeightFormat::kAffine) {
    read_affine(weight, row, out);
    return;
  }
  const BlockLayout layout = block_layout(weight.format);
  const uint8_t* block =
      weight.data + static_cast<size_t>(row) * weight.row_bytes;
  for (int i = 0; i < weight.in_features; i += layout.elements) {
    read_block(weight.format, block, out.quants.data() + i, out);
    block += layout.bytes;
  }
}

} // namespace sheave::kernels
