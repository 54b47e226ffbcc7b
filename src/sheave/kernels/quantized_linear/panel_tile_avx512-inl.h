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
  return _mm512_and_si512(moved, _mm512_set1_epi8(static_cast<char>(kMask)));
}

/// Register R of a group of kBits-bit weights.
template <int kBits, int R>
SHEAVE_KERNEL_INLINE __m512i unpack_register(const uint8_t* group) {
  if constexpr (kBits == 8) {
    return load_line(group + R * 64);
  }
  constexpr int kHigh = kBits & 4;       // bits of the first plane
  constexpr int kMiddle = kBits & 2;     // of the second
  constexpr int kHighBytes = kHigh * 64; // where the second begins
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
    const __m512i bits =
        plane_bits<1, kHigh + kMiddle, R>(group + kHighBytes + kMiddleBytes);
    result = _mm512_or_si512(result, bits);
  }
  return result;
}

template <int kBits>
SHEAVE_KERNEL_INLINE void unpack_group(
    const uint8_t* group,
    __m512i (&weights)[8]) {
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

/// Adds the scaled products of registers [kFirst, kFirst + kCount) for the
/// tokens [kToken, M) of a view, four chains of dependent sums side by side.
template <int M, int kFirst, int kCount, int kToken = 0>
SHEAVE_KERNEL_INLINE void add_token_products(
    const TileView& x,
    const __m512i (&weights)[8],
    VF (&sums)[M]) {
  constexpr int kChains = M - kToken < 4 ? M - kToken : 4;
  __m512i dots[kChains];
  for (int j = 0; j < kChains; ++j) {
    dots[j] = _mm512_set1_epi32(x.starts[kToken + j]);
  }
#pragma GCC unroll 8
  for (int r = kFirst; r < kFirst + kCount; ++r) {
    for (int j = 0; j < kChains; ++j) {
      const int8_t* quants = x.quants + 32 * (kToken + j) + 4 * r;
      dots[j] = add_dots(dots[j], weights[r], quants);
    }
  }
  const VF scale = load(x.scales);
  for (int j = 0; j < kChains; ++j) {
    const VF products = __builtin_convertvector((VI)dots[j], VF);
    const VF factor = scale * splat(x.x_scales[kToken + j]);
    sums[kToken + j] = fmadd(factor, products, sums[kToken + j]);
  }
  if constexpr (kToken + kChains < M) {
    add_token_products<M, kFirst, kCount, kToken + kChains>(x, weights, sums);
  }
}

/// The same for all tokens, and their biases.
template <int M, int kFirst, int kCount>
SHEAVE_KERNEL_INLINE void
add_products(const TileView& x, const __m512i (&weights)[8], VF (&sums)[M]) {
  add_token_products<M, kFirst, kCount>(x, weights, sums);
  if (x.biases != nullptr) {
    const VF bias = load(x.biases);
#pragma GCC unroll 16
    for (int m = 0; m < M; ++m) {
      sums[m] = fmadd(bias, splat(x.bias_sums[m]), sums[m]);
    }
  }
}

/// A group's weights, unpacked; what lies some groups ahead is fetched where
/// few tokens make memory the limit.
template <int kBits, int M>
SHEAVE_KERNEL_INLINE void take_group(
    const uint8_t*& at,
    __m512i (&weights)[8]) {
  unpack_group<kBits>(at, weights);
  at += 64 * kBits;
  if constexpr (M <= 8) {
    for (int line = 0; line < kBits; ++line) {
      _mm_prefetch(at + 2048 + 64 * line, _MM_HINT_T0);
    }
  }
}

/// sums[m] = the panel's 16 rows times the M tokens of a view.
template <int kBits, int M>
SHEAVE_KERNEL_INLINE void multiply_panel(
    const PackedTask& task,
    const uint8_t* quants,
    TileView x,
    VF (&sums)[M][kParts]) {
  __m512i weights[8];
  VF totals[M] = {};
  if (task.layout.scale_group >= 32) {
    for (int column = 0; column < task.x.k; column += 32) {
      take_group<kBits, M>(quants, weights);
      add_products<M, 0, 8>(x, weights, totals);
      x.next_sum();
      x.next_group();
    }
  } else {
    for (int column = 0; column < task.x.k; column += 32) {
      take_group<kBits, M>(quants, weights);
      add_products<M, 0, 4>(x, weights, totals);
      x.next_sum();
      add_products<M, 4, 4>(x, weights, totals);
      x.next_sum();
      x.next_group();
    }
  }
  for (int m = 0; m < M; ++m) {
    sums[m][0] = totals[m];
  }
}

/// vpdpbusd multiplies unsigned bytes with signed ones: quants as they are.
int packed_start_factor(const PackedLayout& layout) {
  return -layout.zero;
}
