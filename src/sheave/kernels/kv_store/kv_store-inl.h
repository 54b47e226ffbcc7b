// float32 to what cache planes hold, rounded to nearest, ties to even.

SHEAVE_KERNEL_INLINE uint16_t float_to_bfloat(float x) {
  uint32_t bits;
  __builtin_memcpy(&bits, &x, sizeof(bits));
  if ((bits & 0x7FFFFFFFU) > 0x7F800000U) {
    return static_cast<uint16_t>(bits >> 16 | 0x40U); // stays a NaN
  }
  return static_cast<uint16_t>((bits + 0x7FFFU + (bits >> 16 & 1U)) >> 16);
}

SHEAVE_KERNEL_INLINE uint16_t float_to_half(float x) {
#if SHEAVE_TARGET_LANES >= 8
  return static_cast<uint16_t>(_cvtss_sh(x, _MM_FROUND_TO_NEAREST_INT));
#else
  uint32_t bits;
  __builtin_memcpy(&bits, &x, sizeof(bits));
  const uint32_t sign = bits >> 16 & 0x8000U;
  bits &= 0x7FFFFFFFU;
  if (bits > 0x7F800000U) {
    return static_cast<uint16_t>(sign | 0x7E00U);
  }
  if (bits >= 0x477FF000U) { // rounds to 2^16 or more
    return static_cast<uint16_t>(sign | 0x7C00U);
  }
  if (bits < 0x38800000U) { // subnormal: adding 0.5 rounds to its last place
    float magnitude;
    __builtin_memcpy(&magnitude, &bits, sizeof(magnitude));
    magnitude += 0.5F;
    uint32_t rounded;
    __builtin_memcpy(&rounded, &magnitude, sizeof(rounded));
    return static_cast<uint16_t>(sign | (rounded - 0x3F000000U));
  }
  const uint32_t rounded = bits + 0xFFFU + (bits >> 13 & 1U);
  return static_cast<uint16_t>(sign | ((rounded - 0x38000000U) >> 13));
#endif
}

/// n floats to `type`.
void store_floats(FloatType type, const float* from, int n, uint8_t* to) {
  int i = 0;
  switch (type) {
    case FloatType::kF32:
      __builtin_memcpy(to, from, static_cast<size_t>(n) * sizeof(float));
      return;
    case FloatType::kF16:
#if SHEAVE_TARGET_LANES >= 8
      for (; i + 8 <= n; i += 8) {
        const __m128i halves = _mm256_cvtps_ph(
            _mm256_loadu_ps(from + i),
            _MM_FROUND_TO_NEAREST_INT);
        __builtin_memcpy(to + 2 * i, &halves, sizeof(halves));
      }
#endif
      for (; i < n; ++i) {
        const uint16_t half = float_to_half(from[i]);
        __builtin_memcpy(to + 2 * i, &half, sizeof(half));
      }
      return;
    case FloatType::kBF16:
      for (; i < n; ++i) {
        const uint16_t half = float_to_bfloat(from[i]);
        __builtin_memcpy(to + 2 * i, &half, sizeof(half));
      }
      return;
  }
}
