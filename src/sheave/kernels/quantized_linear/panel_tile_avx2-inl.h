// A panel of 16 rows with M tokens, AVX2: two halves of eight rows. Bytes are
// multiplied in pairs to 16 bits (vpmaddubsw), which takes as many additions
// as the weights' bits leave room for before they are widened.

constexpr int kTileTokens = 4;

/// Register R's bits of a plane of kWidth bits, moved up to bit kLow; `plane`
/// is that of the half's rows.
template <int kWidth, int kLow>
SHEAVE_KERNEL_INLINE __m256i plane_bits(const uint8_t* plane, int r) {
  constexpr int kPerByte = 8 / kWidth;
  constexpr int kMask = ((1 << kWidth) - 1) << kLow;
  const __m256i line = _mm256_loadu_si256(
      reinterpret_cast<const __m256i*>(plane + r / kPerByte * 64));
  const int left = kLow - r % kPerByte * kWidth;
  const __m256i moved = left >= 0 ? _mm256_slli_epi16(line, left)
                                  : _mm256_srli_epi16(line, -left);
  return _mm256_and_si256(moved, _mm256_set1_epi8(static_cast<char>(kMask)));
}

/// Register r of a group of kBits-bit weights, eight rows; 8-bit ones signed.
template <int kBits>
SHEAVE_KERNEL_INLINE __m256i unpack_register(const uint8_t* group, int r) {
  if constexpr (kBits == 8) {
    const __m256i bytes =
        _mm256_loadu_si256(reinterpret_cast<const __m256i*>(group + r * 64));
    return _mm256_xor_si256(bytes, _mm256_set1_epi8(-128));
  }
  constexpr int kHigh = kBits & 4;
  constexpr int kMiddle = kBits & 2;
  __m256i result = _mm256_setzero_si256();
  if constexpr (kHigh != 0) {
    result = plane_bits<4, 0>(group, r);
  }
  if constexpr (kMiddle != 0) {
    const __m256i bits = plane_bits<2, kHigh>(group + kHigh * 64, r);
    result = _mm256_or_si256(result, bits);
  }
  if constexpr ((kBits & 1) != 0) {
    const __m256i bits =
        plane_bits<1, kHigh + kMiddle>(group + (kHigh + kMiddle) * 64, r);
    result = _mm256_or_si256(result, bits);
  }
  return result;
}

/// Registers whose products fit 16 bits together: 2 * 127 * (2^bits - 1)
/// each, 2 * 127 * 128 for signed bytes.
template <int kBits>
constexpr int kRegistersPerWidening = kBits <= 4   ? 8
                                      : kBits == 5 ? 4
                                      : kBits == 6 ? 2
                                                   : 1;

template <int kBits>
SHEAVE_KERNEL_INLINE __m256i
multiply_bytes(__m256i weights, const int8_t* quants) {
  int32_t quad;
  __builtin_memcpy(&quad, quants, sizeof(quad));
  const __m256i tokens = _mm256_set1_epi32(quad);
  if constexpr (kBits == 8) { // |w| * (x with w's sign)
    return _mm256_maddubs_epi16(
        _mm256_abs_epi8(weights),
        _mm256_sign_epi8(tokens, weights));
  }
  return _mm256_maddubs_epi16(weights, tokens);
}

/// Adds the scaled products of registers [kFirst, kFirst + kCount) for the M
/// tokens of a view and one half of the panel's rows.
template <int kBits, int M, int kFirst, int kCount>
SHEAVE_KERNEL_INLINE void add_products(
    const TileView& x,
    const uint8_t* weights,
    int half,
    VF (&sums)[M]) {
  constexpr int kWidening = kRegistersPerWidening<kBits> < kCount
                                ? kRegistersPerWidening<kBits>
                                : kCount;
  __m256i wide[M];
  for (int m = 0; m < M; ++m) {
    wide[m] = _mm256_set1_epi32(x.starts[m]);
  }
#pragma GCC unroll 8
  for (int first = kFirst; first < kFirst + kCount; first += kWidening) {
    __m256i narrow[M];
#pragma GCC unroll 8
    for (int r = first; r < first + kWidening; ++r) {
      const __m256i w = unpack_register<kBits>(weights + 32 * half, r);
      for (int m = 0; m < M; ++m) {
        const __m256i products =
            multiply_bytes<kBits>(w, x.quants + 32 * m + 4 * r);
        narrow[m] =
            r == first ? products : _mm256_add_epi16(narrow[m], products);
      }
    }
    for (int m = 0; m < M; ++m) {
      wide[m] = _mm256_add_epi32(
          wide[m],
          _mm256_madd_epi16(narrow[m], _mm256_set1_epi16(1)));
    }
  }
  const VF scale = load(x.scales + 8 * half);
  for (int m = 0; m < M; ++m) {
    const VF products = __builtin_convertvector((VI)wide[m], VF);
    sums[m] = fmadd(scale * splat(x.x_scales[m]), products, sums[m]);
  }
  if (x.biases != nullptr) {
    const VF bias = load(x.biases + 8 * half);
    for (int m = 0; m < M; ++m) {
      sums[m] = fmadd(bias, splat(x.bias_sums[m]), sums[m]);
    }
  }
}

/// The same for both halves.
template <int kBits, int M, int kFirst, int kCount>
SHEAVE_KERNEL_INLINE void add_products(
    const TileView& x,
    const uint8_t* weights,
    VF (&half_sums)[kParts][M]) {
  add_products<kBits, M, kFirst, kCount>(x, weights, 0, half_sums[0]);
  add_products<kBits, M, kFirst, kCount>(x, weights, 1, half_sums[1]);
}

/// sums[m] = the panel's 16 rows times the M tokens of a view.
template <int kBits, int M>
SHEAVE_KERNEL_INLINE void multiply_panel(
    const PackedTask& task,
    const uint8_t* quants,
    TileView x,
    VF (&sums)[M][kParts]) {
  VF half_sums[kParts][M] = {};
  for (int column = 0; column < task.x.k; column += 32) {
    if constexpr (M <= 2) { // bound by memory: fetch ahead
      for (int line = 0; line < kBits; ++line) {
        _mm_prefetch(quants + 2048 + 64 * line, _MM_HINT_T0);
      }
    }
    if (task.layout.scale_group >= 32) {
      add_products<kBits, M, 0, 8>(x, quants, half_sums);
    } else {
      add_products<kBits, M, 0, 4>(x, quants, half_sums);
      x.next_sum();
      add_products<kBits, M, 4, 4>(x, quants, half_sums);
    }
    x.next_sum();
    x.next_group();
    quants += 64 * kBits;
  }
  for (int m = 0; m < M; ++m) {
    sums[m][0] = half_sums[0][m];
    sums[m][1] = half_sums[1][m];
  }
}

/// 8-bit quants are read as signed bytes, 128 lower than stored.
int packed_start_factor(const PackedLayout& layout) {
  return layout.bits == 8 ? 128 - layout.zero : -layout.zero;
}
