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
  return _mm256_and_si256(
      moved,
      _mm256_set1_epi8(static_cast<char>(kMask)));
}

/// Register r of a group of kBits-bit weights, eight rows; 8-bit ones signed.
template <int kBits>
SHEAVE_KERNEL_INLINE __m256i unpack_register(const uint8_t* group, int r) {
  if constexpr (kBits == 8) {
    const __m256i bytes = _mm256_loadu_si256(
        reinterpret_cast<const __m256i*>(group + r * 64));
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
    const __m256i bits = plane_bits<1, kHigh + kMiddle>(
        group + (kHigh + kMiddle) * 64,
        r);
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

/// Adds the scaled products of registers [kFirst, kFirst + kCount), which are
/// the columns of sum `index`, for M tokens and one half of the panel's rows.
template <int kBits, int M, int kFirst, int kCount>
SHEAVE_KERNEL_INLINE void add_products(
    const PackedTask& task,
    int token,
    int group,
    int index,
    const uint8_t* weights,
    VF scale,
    VF bias,
    VF (&sums)[M]) {
  constexpr int kWidening = kRegistersPerWidening<kBits> < kCount
                                ? kRegistersPerWidening<kBits>
                                : kCount;
  const size_t per_row = task.x.k / (4 * kCount);
  const size_t groups = task.x.k / 32;
  const int8_t* quants =
      task.x.quants + static_cast<size_t>(token) * task.x.stride + 32 * group;
  __m256i wide[M];
  for (int m = 0; m < M; ++m) {
    wide[m] = _mm256_set1_epi32(
        task.starts[static_cast<size_t>(token + m) * per_row + index]);
  }
#pragma GCC unroll 8
  for (int first = kFirst; first < kFirst + kCount; first += kWidening) {
    __m256i narrow[M];
#pragma GCC unroll 8
    for (int r = first; r < first + kWidening; ++r) {
      const __m256i w = unpack_register<kBits>(weights, r);
      for (int m = 0; m < M; ++m) {
        const __m256i products =
            multiply_bytes<kBits>(w, quants + m * task.x.stride + 4 * r);
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
  for (int m = 0; m < M; ++m) {
    const auto row = static_cast<size_t>(token + m);
    const VF products = __builtin_convertvector((VI)wide[m], VF);
    const VF factor = scale * splat(task.x.scales[row * groups + group]);
    sums[m] = fmadd(factor, products, sums[m]);
    if (task.layout.has_bias) {
      sums[m] =
          fmadd(bias, splat(task.bias_sums[row * per_row + index]), sums[m]);
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
  VF half_sums[kParts][M] = {};
  PanelScales scales = start_scales(task.layout, panel);
  const uint8_t* at = panel + task.scale_bytes;
  for (int group = 0; group < task.x.k / 32; ++group) {
    if constexpr (M <= 2) { // bound by memory: fetch ahead
      for (int line = 0; line < kBits; ++line) {
        _mm_prefetch(at + 2048 + 64 * line, _MM_HINT_T0);
      }
    }
    scales.advance(32 * group);
    if (task.layout.scale_group >= 32) {
      for (int half = 0; half < kParts; ++half) {
        add_products<kBits, M, 0, 8>(
            task,
            token,
            group,
            group,
            at + 32 * half,
            scales.scale[half],
            scales.bias[half],
            half_sums[half]);
      }
    } else {
      const int index = 2 * group;
      for (int half = 0; half < kParts; ++half) {
        add_products<kBits, M, 0, 4>(
            task,
            token,
            group,
            index,
            at + 32 * half,
            scales.scale[half],
            scales.bias[half],
            half_sums[half]);
      }
      scales.advance(32 * group + 16);
      for (int half = 0; half < kParts; ++half) {
        add_products<kBits, M, 4, 4>(
            task,
            token,
            group,
            index + 1,
            at + 32 * half,
            scales.scale[half],
            scales.bias[half],
            half_sums[half]);
      }
    }
    at += 64 * kBits;
  }
  for (int m = 0; m < M; ++m) {
    for (int half = 0; half < kParts; ++half) {
      sums[m][half] = half_sums[half][m];
    }
  }
}

/// 8-bit quants are read as signed bytes, 128 lower than stored.
int packed_start_factor(const PackedLayout& layout) {
  return layout.bits == 8 ? 128 - layout.zero : -layout.zero;
}
