// A panel of 16 rows with M tokens, AVX-512 VNNI: lane n of every register is
// row n. A group's 32 columns are eight registers of weights, unpacked once
// and multiplied with each token's bytes, broadcast four at a time.

constexpr int kTileTokens = 16;

SHEAVE_KERNEL_INLINE __m512i load_line(const uint8_t* p) {
  return _mm512_loadu_si512(p);
}

/// (bytes << left) & mask; negative: shifted right. Whole-byte masks make up
/// for the shift of 16-bit lanes.
template <int kLeft>
SHEAVE_KERNEL_INLINE __m512i shift_bytes(__m512i bytes) {
  if constexpr (kLeft > 0) {
    return _mm512_maskz_slli_epi16(0xFFFFFFFF, bytes, kLeft);
  } else if constexpr (kLeft < 0) {
    return _mm512_maskz_srli_epi16(0xFFFFFFFF, bytes, -kLeft);
  } else {
    return bytes;
  }
}

/// Register R's bits of a plane of kWidth bits, moved up to bit kLow.
template <int kWidth, int kLow, int R>
SHEAVE_KERNEL_INLINE __m512i plane_bits(const uint8_t* plane) {
  constexpr int kPerByte = 8 / kWidth;
  constexpr int kMask = ((1 << kWidth) - 1) << kLow;
  const __m512i line = load_line(plane + R / kPerByte * 64);
  const __m512i moved = shift_bytes<kLow - R % kPerByte * kWidth>(line);
  return _mm512_and_si512(
      moved,
      _mm512_set1_epi8(static_cast<char>(kMask)));
}

/// Register R of a group of kBits-bit weights.
template <int kBits, int R>
SHEAVE_KERNEL_INLINE __m512i unpack_register(const uint8_t* group) {
  if constexpr (kBits == 8) {
    return load_line(group + R * 64);
  }
  constexpr int kHigh = kBits & 4;          // bits of the first plane
  constexpr int kMiddle = kBits & 2;        // of the second
  constexpr int kHighBytes = kHigh * 64;    // where the second begins
  constexpr int kMiddleBytes = kMiddle * 64;
  __m512i result = _mm512_setzero_si512();
  if constexpr (kHigh != 0) {
    result = plane_bits<4, 0, R>(group);
  }
  if constexpr (kMiddle != 0) {
    const __m512i bits = plane_bits<2, kHigh, R>(group + kHighBytes);
    result = _mm512_or_si512(result, bits);
  }
  if constexpr ((kBits & 1) != 0) {
    const __m512i bits = plane_bits<1, kHigh + kMiddle, R>(
        group + kHighBytes + kMiddleBytes);
    result = _mm512_or_si512(result, bits);
  }
  return result;
}

template <int kBits>
SHEAVE_KERNEL_INLINE void
unpack_group(const uint8_t* group, __m512i (&weights)[8]) {
  weights[0] = unpack_register<kBits, 0>(group);
  weights[1] = unpack_register<kBits, 1>(group);
  weights[2] = unpack_register<kBits, 2>(group);
  weights[3] = unpack_register<kBits, 3>(group);
  weights[4] = unpack_register<kBits, 4>(group);
  weights[5] = unpack_register<kBits, 5>(group);
  weights[6] = unpack_register<kBits, 6>(group);
  weights[7] = unpack_register<kBits, 7>(group);
}

SHEAVE_KERNEL_INLINE __m512i broadcast_quad(const int8_t* quants) {
  int32_t quad;
  __builtin_memcpy(&quad, quants, sizeof(quad));
  return _mm512_set1_epi32(quad);
}

/// start + the products of registers [kFirst, kFirst + kCount) with a token's
/// quants, as floats.
template <int kFirst, int kCount>
SHEAVE_KERNEL_INLINE VF multiply_group(
    const __m512i (&weights)[8],
    const int8_t* quants,
    int32_t start) {
  __m512i sum = _mm512_set1_epi32(start);
#pragma GCC unroll 8
  for (int r = kFirst; r < kFirst + kCount; ++r) {
    sum = _mm512_dpbusd_epi32(sum, weights[r], broadcast_quad(quants + 4 * r));
  }
  return __builtin_convertvector((VI)sum, VF);
}

/// Adds the scaled products of registers [kFirst, kFirst + kCount), which are
/// the columns of sum `index`, for M tokens.
template <int M, int kFirst, int kCount>
SHEAVE_KERNEL_INLINE void add_products(
    const PackedTask& task,
    int token,
    int group,
    int index,
    const __m512i (&weights)[8],
    const PanelScales& scales,
    VF (&sums)[M][kParts]) {
  const size_t per_row = task.x.k / (4 * kCount);
  const size_t groups = task.x.k / 32;
#pragma GCC unroll 16
  for (int m = 0; m < M; ++m) {
    const auto row = static_cast<size_t>(token + m);
    const VF products = multiply_group<kFirst, kCount>(
        weights,
        task.x.quants + row * task.x.stride + 32 * group,
        task.starts[row * per_row + index]);
    const VF factor =
        scales.scale[0] * splat(task.x.scales[row * groups + group]);
    sums[m][0] = fmadd(factor, products, sums[m][0]);
  }
  if (task.layout.has_bias) {
#pragma GCC unroll 16
    for (int m = 0; m < M; ++m) {
      const auto row = static_cast<size_t>(token + m);
      sums[m][0] = fmadd(
          scales.bias[0],
          splat(task.bias_sums[row * per_row + index]),
          sums[m][0]);
    }
  }
}

/// sums[m] = the panel's 16 rows times token `token` + m.
template <int kBits, int M>
SHEAVE_KERNEL_INLINE void multiply_panel(
    const PackedTask& task,
    const uint8_t* panel,
    int token,
    VF (&sums)[M][kParts]) {
  PanelScales scales = start_scales(task.layout, panel);
  const uint8_t* at = panel + task.scale_bytes;
  for (int group = 0; group < task.x.k / 32; ++group) {
    __m512i weights[8];
    unpack_group<kBits>(at, weights);
    at += 64 * kBits;
    if constexpr (M <= 4) { // bound by memory: fetch ahead
      for (int line = 0; line < kBits; ++line) {
        _mm_prefetch(at + 2048 + 64 * line, _MM_HINT_T0);
      }
    }
    scales.advance(32 * group);
    if (task.layout.scale_group >= 32) {
      add_products<M, 0, 8>(task, token, group, group, weights, scales, sums);
    } else {
      const int index = 2 * group;
      add_products<M, 0, 4>(task, token, group, index, weights, scales, sums);
      scales.advance(32 * group + 16);
      add_products<M, 4, 4>(
          task,
          token,
          group,
          index + 1,
          weights,
          scales,
          sums);
    }
  }
}

/// vpdpbusd multiplies unsigned bytes with signed ones: quants as they are.
int packed_start_factor(const PackedLayout& layout) {
  return -layout.zero;
}
