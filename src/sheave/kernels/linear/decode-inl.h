// Decoders: one stored row to float32. Plain loops that the compiler
// vectorizes for the target. Values equal the formats' definitions bit for
// bit: every product below is exact in float32 or rounded as MLX rounds it, so
// contraction to FMA is off for these files.
// Source of the block layouts: ggml-common.h and ggml-quants.c of llama.cpp;
// MLX's affine packing: mlx/backend/cpu/quantized.cpp.

SHEAVE_KERNEL_INLINE float half_to_float(uint16_t bits) {
#if SHEAVE_TARGET_LANES >= 8
  return _cvtsh_ss(bits);
#else
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000U) << 16;
  const uint32_t magnitude = bits & 0x7FFFU;
  uint32_t word;
  if (magnitude >= 0x7C00U) { // infinity and NaN
    word = 0x7F800000U | (magnitude & 0x3FFU) << 13;
  } else { // scaling by 2^112 turns subnormals into normal numbers exactly
    word = magnitude << 13;
    float scaled;
    __builtin_memcpy(&scaled, &word, sizeof(scaled));
    scaled *= 0x1p112F;
    __builtin_memcpy(&word, &scaled, sizeof(word));
  }
  word |= sign;
  float result;
  __builtin_memcpy(&result, &word, sizeof(result));
  return result;
#endif
}

SHEAVE_KERNEL_INLINE float bfloat_to_float(uint16_t bits) {
  const uint32_t word = static_cast<uint32_t>(bits) << 16;
  float result;
  __builtin_memcpy(&result, &word, sizeof(result));
  return result;
}

SHEAVE_KERNEL_INLINE uint16_t load_u16(const uint8_t* p) {
  uint16_t value;
  __builtin_memcpy(&value, p, sizeof(value));
  return value;
}

SHEAVE_KERNEL_INLINE uint32_t load_u32(const uint8_t* p) {
  uint32_t value;
  __builtin_memcpy(&value, p, sizeof(value));
  return value;
}

SHEAVE_KERNEL_INLINE float load_half(const uint8_t* p) {
  return half_to_float(load_u16(p));
}

/// kLanes half-precision floats as float32.
SHEAVE_KERNEL_INLINE VF halves_to_floats(const uint8_t* p) {
#if SHEAVE_TARGET_LANES == 16
  return (VF)_mm512_maskz_cvtph_ps(
      0xFFFF,
      _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
#elif SHEAVE_TARGET_LANES == 8
  return (VF)_mm256_cvtph_ps(
      _mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
#else
  VF v;
  for (int i = 0; i < kLanes; ++i) {
    v[i] = half_to_float(load_u16(p + 2 * i));
  }
  return v;
#endif
}

/// kLanes bfloat16 as float32.
SHEAVE_KERNEL_INLINE VF bfloats_to_floats(const uint8_t* p) {
#if SHEAVE_TARGET_LANES == 16
  return (VF)_mm512_maskz_slli_epi32(
      0xFFFF,
      _mm512_maskz_cvtepu16_epi32(
          0xFFFF,
          _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))),
      16);
#elif SHEAVE_TARGET_LANES == 8
  return (VF)_mm256_slli_epi32(
      _mm256_cvtepu16_epi32(
          _mm_loadu_si128(reinterpret_cast<const __m128i*>(p))),
      16);
#else
  VF v;
  for (int i = 0; i < kLanes; ++i) {
    v[i] = bfloat_to_float(load_u16(p + 2 * i));
  }
  return v;
#endif
}

/// Floats of any type to float32.
SHEAVE_KERNEL_INLINE void
to_float(FloatType type, const uint8_t* from, int n, float* out) {
  switch (type) {
    case FloatType::kF32:
      __builtin_memcpy(out, from, static_cast<size_t>(n) * sizeof(float));
      break;
    case FloatType::kF16: {
      int i = 0;
      for (; i + kLanes <= n; i += kLanes) {
        store(out + i, halves_to_floats(from + 2 * i));
      }
      for (; i < n; ++i) {
        out[i] = half_to_float(load_u16(from + 2 * i));
      }
      break;
    }
    case FloatType::kBF16:
      for (int i = 0; i < n; ++i) {
        out[i] = bfloat_to_float(load_u16(from + 2 * i));
      }
      break;
  }
}

SHEAVE_KERNEL_INLINE float
float_at(FloatType type, const void* data, size_t index) {
  const auto* bytes = static_cast<const uint8_t*>(data);
  switch (type) {
    case FloatType::kF16:
      return half_to_float(load_u16(bytes + 2 * index));
    case FloatType::kBF16:
      return bfloat_to_float(load_u16(bytes + 2 * index));
    default: {
      float value;
      __builtin_memcpy(&value, bytes + 4 * index, sizeof(value));
      return value;
    }
  }
}

typedef uint8_t U8x16 __attribute__((vector_size(16)));
typedef int8_t I8x16 __attribute__((vector_size(16)));
typedef uint16_t U16x8 __attribute__((vector_size(16)));

SHEAVE_KERNEL_INLINE U8x16 load_bytes(const uint8_t* p) {
  U8x16 v;
  __builtin_memcpy(&v, p, sizeof(v));
  return v;
}

SHEAVE_KERNEL_INLINE void store_quants(int8_t* q, I8x16 v) {
  __builtin_memcpy(q, &v, sizeof(v));
}

/// Bits [shift, shift + 8) of every byte, as far as `mask` keeps them: a shift
/// of 16-bit lanes, of which the mask drops what came from the neighbour.
SHEAVE_KERNEL_INLINE I8x16 bits_of(U8x16 bytes, int shift, uint8_t mask) {
  const U8x16 masks = bytes - bytes + mask;
  return (I8x16)((U8x16)((U16x8)bytes >> shift) & masks);
}

/// kLanes signed bytes as int32. (Written out: GCC 12 converts vectors of
/// bytes one by one.)
SHEAVE_KERNEL_INLINE VI widen(const int8_t* q) {
#if SHEAVE_TARGET_LANES == 16
  return (VI)_mm512_maskz_cvtepi8_epi32(
      0xFFFF,
      _mm_loadu_si128(reinterpret_cast<const __m128i*>(q)));
#elif SHEAVE_TARGET_LANES == 8
  return (VI)_mm256_cvtepi8_epi32(
      _mm_loadl_epi64(reinterpret_cast<const __m128i*>(q)));
#else
  return VI{q[0], q[1], q[2], q[3]};
#endif
}

/// out[i] = scale * q[i], or scale * q[i] + bias, for 16 quants. Every product
/// of a half-precision scale with a quant is exact in float32.
template <bool kBias>
SHEAVE_KERNEL_INLINE void
scale_quants(const int8_t* q, float scale, float bias, float* out) {
  for (int i = 0; i < 16; i += kLanes) {
    const VF v = __builtin_convertvector(widen(q + i), VF) * splat(scale);
    store(out + i, kBias ? v + splat(bias) : v);
  }
}

/// Low nibbles of 16 bytes to q[0..15], high ones to q[16..31], less `zero`.
SHEAVE_KERNEL_INLINE void
split_nibbles(const uint8_t* packed, int8_t zero, int8_t* q) {
  const U8x16 bytes = load_bytes(packed);
  store_quants(q, bits_of(bytes, 0, 15) - zero);
  store_quants(q + 16, bits_of(bytes, 4, 15) - zero);
}

/// Adds 16 to q[i] where bit i of the 32 is set.
SHEAVE_KERNEL_INLINE void add_fifth_bits(const uint8_t* high, int8_t* q) {
  const uint32_t bits = load_u32(high);
#if SHEAVE_TARGET_LANES >= 8
  // Byte i gets the byte that holds bit i, then all ones where it is set.
  const __m256i places = _mm256_setr_epi64x(
      0x0000000000000000,
      0x0101010101010101,
      0x0202020202020202,
      0x0303030303030303);
  const __m256i masks =
      _mm256_set1_epi64x(static_cast<int64_t>(0x8040201008040201U));
  const __m256i spread = _mm256_and_si256(
      _mm256_shuffle_epi8(
          _mm256_set1_epi32(static_cast<int32_t>(bits)),
          places),
      masks);
  const __m256i sixteens =
      _mm256_and_si256(_mm256_cmpeq_epi8(spread, masks), _mm256_set1_epi8(16));
  auto* to = reinterpret_cast<__m256i*>(q);
  _mm256_storeu_si256(to, _mm256_add_epi8(_mm256_loadu_si256(to), sixteens));
#else
  for (int i = 0; i < 32; ++i) {
    q[i] = static_cast<int8_t>(q[i] + ((bits >> i & 1) << 4));
  }
#endif
}

/// 32 quants with one scale.
template <bool kBias>
SHEAVE_KERNEL_INLINE void
scale_32(const int8_t* q, float scale, float bias, float* out) {
  scale_quants<kBias>(q, scale, bias, out);
  scale_quants<kBias>(q + 16, scale, bias, out + 16);
}

SHEAVE_KERNEL_INLINE void decode_q4_0(const uint8_t* block, float* out) {
  int8_t q[32];
  split_nibbles(block + 2, 8, q);
  scale_32<false>(q, load_half(block), 0, out);
}

SHEAVE_KERNEL_INLINE void decode_q4_1(const uint8_t* block, float* out) {
  int8_t q[32];
  split_nibbles(block + 4, 0, q);
  scale_32<true>(q, load_half(block), load_half(block + 2), out);
}

SHEAVE_KERNEL_INLINE void decode_q5_0(const uint8_t* block, float* out) {
  int8_t q[32];
  split_nibbles(block + 6, 16, q);
  add_fifth_bits(block + 2, q);
  scale_32<false>(q, load_half(block), 0, out);
}

SHEAVE_KERNEL_INLINE void decode_q5_1(const uint8_t* block, float* out) {
  int8_t q[32];
  split_nibbles(block + 8, 0, q);
  add_fifth_bits(block + 4, q);
  scale_32<true>(q, load_half(block), load_half(block + 2), out);
}

SHEAVE_KERNEL_INLINE void decode_q8_0(const uint8_t* block, float* out) {
  const auto* q = reinterpret_cast<const int8_t*>(block + 2);
  scale_32<false>(q, load_half(block), 0, out);
}

/// The eight 6-bit scales and minimums of a Q4_K or Q5_K block lie in 12
/// bytes: four whole ones each, then four split between low and high bits.
SHEAVE_KERNEL_INLINE void
unpack_k_scales(const uint8_t* packed, uint8_t* scales, uint8_t* mins) {
  for (int i = 0; i < 4; ++i) {
    scales[i] = packed[i] & 63;
    mins[i] = packed[i + 4] & 63;
    scales[i + 4] =
        static_cast<uint8_t>((packed[i + 8] & 15) | (packed[i] >> 6) << 4);
    mins[i + 4] =
        static_cast<uint8_t>((packed[i + 8] >> 4) | (packed[i + 4] >> 6) << 4);
  }
}

/// Q4_K, and Q5_K where `high` holds the fifth bits: group g of 32 quants is
/// a half of the nibbles of 32 bytes.
SHEAVE_KERNEL_INLINE void decode_k_groups(
    const uint8_t* block,
    const uint8_t* high,
    const uint8_t* packed,
    float* out) {
  const float d = load_half(block);
  const float dmin = load_half(block + 2);
  uint8_t scales[8];
  uint8_t mins[8];
  unpack_k_scales(block + 4, scales, mins);
  for (int group = 0; group < 8; ++group) {
    const uint8_t* bytes = packed + 32 * (group / 2);
    const int shift = 4 * (group % 2);
    int8_t q[32];
    for (int i = 0; i < 32; i += 16) {
      I8x16 quants = bits_of(load_bytes(bytes + i), shift, 15);
      if (high != nullptr) {
        quants |= bits_of(load_bytes(high + i), group, 1) << 4;
      }
      store_quants(q + i, quants);
    }
    scale_32<true>(
        q,
        d * scales[group],
        -(dmin * mins[group]),
        out + 32 * group);
  }
}

SHEAVE_KERNEL_INLINE void decode_q4_k(const uint8_t* block, float* out) {
  decode_k_groups(block, nullptr, block + 16, out);
}

SHEAVE_KERNEL_INLINE void decode_q5_k(const uint8_t* block, float* out) {
  decode_k_groups(block, block + 16, block + 48, out);
}

SHEAVE_KERNEL_INLINE void decode_q6_k(const uint8_t* block, float* out) {
  const auto* scales = reinterpret_cast<const int8_t*>(block + 192);
  const float d = load_half(block + 208);
  for (int quarter = 0; quarter < 8; ++quarter) { // 32 quants each
    const int half = quarter / 4;
    const int part = quarter % 4;
    const uint8_t* low = block + 64 * half + 32 * (part % 2);
    const uint8_t* high = block + 128 + 32 * half;
    const int low_shift = 4 * (part / 2);
    const int high_shift = 2 * part;
    int8_t q[32];
    for (int i = 0; i < 32; i += 16) {
      const I8x16 low_bits = bits_of(load_bytes(low + i), low_shift, 15);
      const I8x16 high_bits = bits_of(load_bytes(high + i), high_shift, 3);
      store_quants(q + i, (low_bits | high_bits << 4) - int8_t{32});
    }
    const int8_t* scale = scales + 2 * quarter;
    scale_quants<false>(q, d * scale[0], 0, out + 32 * quarter);
    scale_quants<false>(q + 16, d * scale[1], 0, out + 32 * quarter + 16);
  }
}

/// scale * q + bias per group; quants are packed from the low bits up, within
/// the row's bytes taken as one little-endian number.
SHEAVE_KERNEL_INLINE void
decode_affine(const WeightRows& weight, int row, float* out) {
  const int bits = weight.bits;
  const uint32_t mask = (1U << bits) - 1;
  const uint8_t* data =
      weight.data + static_cast<size_t>(row) * weight.row_bytes;
  const int groups = weight.in_features / weight.group_size;
  for (int group = 0; group < groups; ++group) {
    const size_t at = static_cast<size_t>(row) * groups + group;
    const float scale = float_at(weight.scale_type, weight.scales, at);
    const float bias = float_at(weight.scale_type, weight.biases, at);
    const int first = group * weight.group_size;
    // Eight quants take `bits` whole bytes, whatever the bits.
    for (int i = first; i < first + weight.group_size; i += 8) {
      uint64_t word = 0;
      __builtin_memcpy(&word, data + static_cast<size_t>(i) / 8 * bits, bits);
      for (int j = 0; j < 8; ++j) {
        const auto q = static_cast<int32_t>(word >> (j * bits) & mask);
        out[i + j] = scale * static_cast<float>(q) + bias;
      }
    }
  }
}

template <int kElements, int kBytes, typename Decode>
SHEAVE_KERNEL_INLINE void
decode_blocks(const uint8_t* row, int in_features, float* out, Decode decode) {
  for (int i = 0; i < in_features; i += kElements) {
    decode(row, out + i);
    row += kBytes;
  }
}

void decode_row(const WeightRows& weight, int row, float* out) {
  const uint8_t* data =
      weight.data + static_cast<size_t>(row) * weight.row_bytes;
  const int k = weight.in_features;
  switch (weight.format) {
    case WeightFormat::kF32:
      to_float(FloatType::kF32, data, k, out);
      break;
    case WeightFormat::kF16:
      to_float(FloatType::kF16, data, k, out);
      break;
    case WeightFormat::kBF16:
      to_float(FloatType::kBF16, data, k, out);
      break;
    case WeightFormat::kAffine:
      decode_affine(weight, row, out);
      break;
    case WeightFormat::kQ4_0:
      decode_blocks<32, 18>(data, k, out, decode_q4_0);
      break;
    case WeightFormat::kQ4_1:
      decode_blocks<32, 20>(data, k, out, decode_q4_1);
      break;
    case WeightFormat::kQ5_0:
      decode_blocks<32, 22>(data, k, out, decode_q5_0);
      break;
    case WeightFormat::kQ5_1:
      decode_blocks<32, 24>(data, k, out, decode_q5_1);
      break;
    case WeightFormat::kQ8_0:
      decode_blocks<32, 34>(data, k, out, decode_q8_0);
      break;
    case WeightFormat::kQ4_K:
      decode_blocks<256, 144>(data, k, out, decode_q4_k);
      break;
    case WeightFormat::kQ5_K:
      decode_blocks<256, 176>(data, k, out, decode_q5_k);
      break;
    case WeightFormat::kQ6_K:
      decode_blocks<256, 210>(data, k, out, decode_q6_k);
      break;
  }
}
