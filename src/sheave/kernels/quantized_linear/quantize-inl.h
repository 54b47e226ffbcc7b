// Activations to 8-bit integers, 32 columns to a scale.

/// 32 integers within a byte's range, as bytes.
SHEAVE_KERNEL_INLINE void store_bytes(const int32_t* from, int8_t* to) {
#if SHEAVE_TARGET_LANES == 16
  for (int i = 0; i < 32; i += 16) {
    const __m512i wide = _mm512_loadu_si512(from + i);
    _mm_storeu_si128(
        reinterpret_cast<__m128i*>(to + i),
        _mm512_maskz_cvtepi32_epi8(0xFFFF, wide));
  }
#elif defined(__x86_64__)
  for (int i = 0; i < 32; i += 16) {
    const auto* wide = reinterpret_cast<const __m128i*>(from + i);
    const __m128i low =
        _mm_packs_epi32(_mm_loadu_si128(wide), _mm_loadu_si128(wide + 1));
    const __m128i high =
        _mm_packs_epi32(_mm_loadu_si128(wide + 2), _mm_loadu_si128(wide + 3));
    _mm_storeu_si128(
        reinterpret_cast<__m128i*>(to + i),
        _mm_packs_epi16(low, high));
  }
#else
  for (int i = 0; i < 32; ++i) {
    to[i] = static_cast<int8_t>(from[i]);
  }
#endif
}

/// The sum of 16 bytes.
SHEAVE_KERNEL_INLINE int32_t sum_bytes(const int8_t* bytes) {
#if defined(__x86_64__)
  // Sums of unsigned bytes are one instruction; 128 is added to each first.
  const __m128i shifted = _mm_xor_si128(
      _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes)),
      _mm_set1_epi8(-128));
  const __m128i halves = _mm_sad_epu8(shifted, _mm_setzero_si128());
  return _mm_cvtsi128_si32(halves) + _mm_extract_epi16(halves, 4) - 16 * 128;
#else
  int32_t sum = 0;
  for (int i = 0; i < 16; ++i) {
    sum += bytes[i];
  }
  return sum;
#endif
}

/// 32 columns; sums[0] and sums[kTokenTile] get their halves' sums. The scale
/// is the largest magnitude / 127, quants are rounded to nearest, ties to even.
/// Magnitudes are compared as integers, in which order NaN and infinity come
/// last and can't hide.
SHEAVE_KERNEL_INLINE float
quantize_32(const float* x, int8_t* quants, int32_t* sums) {
  VI largest = {};
  for (int i = 0; i < 32; i += kLanes) {
    const VI magnitude = (VI)load(x + i) & 0x7FFFFFFF;
    largest = magnitude > largest ? magnitude : largest;
  }
  int32_t lanes[kLanes];
  __builtin_memcpy(lanes, &largest, sizeof(lanes));
  int32_t bits = 0;
  for (int i = 0; i < kLanes; ++i) {
    bits = lanes[i] > bits ? lanes[i] : bits;
  }
  float maximum;
  __builtin_memcpy(&maximum, &bits, sizeof(maximum));
  const bool finite = bits < 0x7F800000;
  const bool zero = !finite || maximum < 1e-30F;
  const VF inverse = splat(zero ? 0.0F : 127.0F / maximum);
  // 1.5 * 2^23: adding it rounds to an integer, in the low bits.
  const VF magic = splat(12582912.0F);
  int32_t rounded[32];
  for (int i = 0; i < 32; i += kLanes) {
    const VF value = zero ? VF{} : load(x + i);
    const VI integer = (VI)fmadd(value, inverse, magic) - (VI)magic;
    __builtin_memcpy(rounded + i, &integer, sizeof(integer));
  }
  store_bytes(rounded, quants);
  sums[0] = sum_bytes(quants);
  sums[kTokenTile] = sum_bytes(quants + 16);
  const float scale = maximum / 127.0F;
  return finite ? (zero ? 0.0F : scale) : __builtin_nanf("");
}

void quantize_token(const float* x, int token, const QuantizedTokens& tokens) {
  const int groups = tokens.k / 32;
  const size_t tile = static_cast<size_t>(token / kTokenTile) * groups;
  const int place = token % kTokenTile;
  for (int group = 0; group < groups; ++group) {
    const size_t at = (tile + group) * kTokenTile;
    tokens.scales[at + place] = quantize_32(
        x + 32 * group,
        tokens.quants + (at + place) * 32,
        tokens.sums + 2 * at + place);
  }
}
