// One row of RMSNorm.

void rms_norm(
    const float* x,
    const float* weight,
    float eps,
    int dims,
    float* out) {
  VF sums[kParts] = {};
  int i = 0;
  for (; i + kSumLanes <= dims; i += kSumLanes) {
    for (int part = 0; part < kParts; ++part) {
      const VF v = load(x + i + part * kLanes);
      sums[part] = fmadd(v, v, sums[part]);
    }
  }
  if (i < dims) {
    float tail[kSumLanes] = {};
    for (int j = 0; i + j < dims; ++j) {
      tail[j] = x[i + j];
    }
    for (int part = 0; part < kParts; ++part) {
      const VF v = load(tail + part * kLanes);
      sums[part] = fmadd(v, v, sums[part]);
    }
  }
  const float mean = sum_lanes(sums) / static_cast<float>(dims);
  const float inverse = 1.0F / __builtin_sqrtf(mean + eps);
  for (int j = 0; j < dims; ++j) {
    out[j] = x[j] * inverse * weight[j];
  }
}
