// The vector type of one target, as a thin layer over GCC's and Clang's vector
// extensions. Included once per target, inside its namespace and its target
// region, after all standard headers.

#if SHEAVE_TARGET_LANES == 16
typedef float VF __attribute__((vector_size(64)));
typedef int32_t VI __attribute__((vector_size(64)));
#elif SHEAVE_TARGET_LANES == 8
typedef float VF __attribute__((vector_size(32)));
typedef int32_t VI __attribute__((vector_size(32)));
#else
typedef float VF __attribute__((vector_size(16)));
typedef int32_t VI __attribute__((vector_size(16)));
#endif

constexpr int kLanes = SHEAVE_TARGET_LANES;
constexpr int kParts = kSumLanes / kLanes; // vectors per kSumLanes lanes

SHEAVE_KERNEL_INLINE VF load(const float* p) {
  VF v;
  __builtin_memcpy(&v, p, sizeof(v));
  return v;
}

SHEAVE_KERNEL_INLINE void store(float* p, VF v) {
  __builtin_memcpy(p, &v, sizeof(v));
}

SHEAVE_KERNEL_INLINE VF splat(float x) {
  return x - VF{};
}

SHEAVE_KERNEL_INLINE VF fmadd(VF a, VF b, VF c) {
#if SHEAVE_TARGET_LANES == 16
  return (VF)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif SHEAVE_TARGET_LANES == 8
  return (VF)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#elif defined(__aarch64__)
  return (VF)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b);
#else
  return a * b + c;
#endif
}

/// The sum of kSumLanes lanes, in the one order used everywhere: halves are
/// added until one is left.
SHEAVE_KERNEL_INLINE float sum_lanes(const VF (&lanes)[kParts]) {
  float values[kSumLanes];
  for (int i = 0; i < kParts; ++i) {
    store(values + i * kLanes, lanes[i]);
  }
  for (int width = kSumLanes / 2; width > 0; width /= 2) {
    for (int i = 0; i < width; ++i) {
      values[i] += values[i + width];
    }
  }
  return values[0];
}

/// e^x within 2 units in the last place for x in [-87, 88]; 0 below, about
/// 3e38 above, NaN for NaN. Range reduction to |r| <= ln 2 / 2 and a
/// polynomial of degree 6 (Taylor coefficients).
SHEAVE_KERNEL_INLINE VF exp_lanes(VF x) {
  const VF high = splat(88.3F);
  const VF low = splat(-87.3F);
  const VF clamped_high = x > high ? high : x;
  const VF clamped = clamped_high < low ? low : clamped_high;
  const VF magic = splat(12582912.0F); // 1.5 * 2^23: rounds to an integer
  const VF shifted = fmadd(clamped, splat(1.44269504F), magic);
  const VF n = shifted - magic;
  VF r = fmadd(n, splat(-0.693359375F), clamped);
  r = fmadd(n, splat(2.12194440e-4F), r);
  VF p = splat(1.0F / 720);
  p = fmadd(p, r, splat(1.0F / 120));
  p = fmadd(p, r, splat(1.0F / 24));
  p = fmadd(p, r, splat(1.0F / 6));
  p = fmadd(p, r, splat(0.5F));
  p = fmadd(p, r, splat(1.0F));
  p = fmadd(p, r, splat(1.0F));
  const VI exponent = ((VI)shifted - (VI)magic) << 23;
  const VF result = (VF)((VI)p + exponent);
  const VF checked = x < low ? splat(0.0F) : result;
  return x != x ? x : checked;
}
