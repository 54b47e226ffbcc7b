// A panel of 16 rows with M tokens, AVX-512 VNNI: lane n of every register is
// row n. A group's 32 columns are eight registers of weights, unpacked once
// and multiplied with each token's bytes, broadcast four at a time.

constexpr int kTileTokens = 16;
static_assert(kTileTokens <= kTokenTile);

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

/// sum + weights * four of a token's quants. Written as an instruction: GCC
/// 12 broadcasts to a register first, which costs a third of the speed.
SHEAVE_KERNEL_INLINE __m512i
add_dots(__m512i sum, __m512i weights, const int8_t* quants) {
  struct Quad {
    int8_t quants[4];
  };
  asm("vpdpbusd %2%{1to16%}, %1, %0"
      : "+v"(sum)
      : "v"(weights), "m"(*reinterpret_cast<const Quad*>(quants)));
  return sum;
}

/// Adds the scaled products of registers [kFirst, kFirst + kCount) for N
/// tokens, whose chains of dependent sums run side by side.
template <int N, int kFirst, int kCount>
SHEAVE_KERNEL_INLINE void add_token_products(
    const TileView& x,
    int m,
    const __m512i (&weights)[8],
    const PanelScales& scales,
    VF (*sums)[kParts]) {
  __m512i dots[N];
  for (int j = 0; j < N; ++j) {
    dots[j] = _mm512_set1_epi32(x.starts[m + j]);
  }
#pragma GCC unroll 8
  for (int r = kFirst; r < kFirst + kCount; ++r) {
    for (int j = 0; j < N; ++j) {
      dots[j] = add_dots(dots[j], weights[r], x.quants + 32 * (m + j) + 4 * r);
    }
  }
  for (int j = 0; j < N; ++j) {
    const VF products = __builtin_convertvector((VI)dots[j], VF);
    const VF factor = scales.scale[0] * splat(x.scales[m + j]);
    sums[j][0] = fmadd(factor, products, sums[j][0]);
  }
}

/// The same for the M tokens of a view, and their biases.
template <int M, int kFirst, int kCount>
SHEAVE_KERNEL_INLINE void add_products(
    const TileView& x,
    const __m512i (&weights)[8],
    const PanelScales& scales,
    VF (&sums)[M][kParts]) {
  constexpr int kChains = M < 4 ? M : 4;
#pragma GCC unroll 4
  for (int m = 0; m < M; m += kChains) {
    add_token_products<kChains, kFirst, kCount>(
        x,
        m,
        weights,
        scales,
        sums + m);
  }
  if (scales.has_bias) {
#pragma GCC unroll 16
    for (int m = 0; m < M; ++m) {
      sums[m][0] = fmadd(scales.bias[0], splat(x.bias_sums[m]), sums[m][0]);
    }
  }
}

/// sums[m] = the panel's 16 rows times the M tokens from place `place` of tile
/// `tile` on.
template <int kBits, int M>
SHEAVE_KERNEL_INLINE void multiply_panel(
    const PackedTask& task,
    const uint8_t* panel,
    int tile,
    int place,
    VF (&sums)[M][kParts]) {
  PanelScales scales = start_scales(task.layout, panel);
  TileView x = view_tile(task, tile, place);
  const uint8_t* at = panel + task.scale_bytes;
  for (int column = 0; column < task.x.k; column += 32) {
    __m512i weights[8];
    unpack_group<kBits>(at, weights);
    at += 64 * kBits;
    if constexpr (M <= 4) { // bound by memory: fetch ahead
      for (int line = 0; line < kBits; ++line) {
        _mm_prefetch(at + 2048 + 64 * line, _MM_HINT_T0);
      }
    }
    scales.advance(column);
    if (scales.columns_per_scale >= 32) {
      add_products<M, 0, 8>(x, weights, scales, sums);
      x.next_sums();
    } else {
      add_products<M, 0, 4>(x, weights, scales, sums);
      x.next_sums();
      scales.advance(column + 16);
      add_products<M, 4, 4>(x, weights, scales, sums);
      x.next_sums();
    }
    x.next_group();
  }
}

/// vpdpbusd multiplies unsigned bytes with signed ones: quants as they are.
int packed_start_factor(const PackedLayout& layout) {
  return -layout.zero;
}
