// Passes over a vocabulary's logits. NaN compares false with everything, so it
// never counts as larger.

/// The largest of n logits; minus infinity if there is none.
float largest_logit(const float* logits, int n) {
  VF best = splat(-__builtin_inff());
  int i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const VF x = load(logits + i);
    best = x > best ? x : best;
  }
  float lanes[kLanes];
  store(lanes, best);
  float result = -__builtin_inff();
  for (int lane = 0; lane < kLanes; ++lane) {
    result = lanes[lane] > result ? lanes[lane] : result;
  }
  for (; i < n; ++i) {
    result = logits[i] > result ? logits[i] : result;
  }
  return result;
}

/// Writes the indices of logits of at least `threshold`, in order, until
/// `capacity` are found or the n logits end. Returns how many; *next is where
/// it stopped.
int find_logits(
    const float* logits,
    int n,
    float threshold,
    int capacity,
    int32_t* indices,
    int* next) {
  int found = 0;
  int i = 0;
  const VF limit = splat(threshold);
  while (i < n && found < capacity) {
    if (i + kLanes <= n) {
      const VI above = load(logits + i) >= limit;
      int32_t lanes[kLanes];
      __builtin_memcpy(lanes, &above, sizeof(lanes));
      int32_t any = 0;
      for (int lane = 0; lane < kLanes; ++lane) {
        any |= lanes[lane];
      }
      if (any == 0) {
        i += kLanes;
        continue;
      }
    }
    const int end = i + kLanes < n ? i + kLanes : n;
    for (; i < end && found < capacity; ++i) {
      if (logits[i] >= threshold) {
        indices[found++] = i;
      }
    }
  }
  *next = i;
  return found;
}

/// sum(exp(logit - offset)) over n logits, NaN left out.
float sum_exp(const float* logits, int n, float offset) {
  VF sums[kParts] = {};
  for (int i = 0; i < n; i += kSumLanes) {
    float tail[kSumLanes];
    const float* from = logits + i;
    if (i + kSumLanes > n) {
      for (int j = 0; j < kSumLanes; ++j) {
        tail[j] = i + j < n ? logits[i + j] : -__builtin_inff();
      }
      from = tail;
    }
    for (int part = 0; part < kParts; ++part) {
      const VF x = load(from + part * kLanes);
      const VF e = exp_lanes(x - splat(offset));
      sums[part] = sums[part] + (e == e ? e : VF{});
    }
  }
  return sum_lanes(sums);
}

/// out = exp((logit - offset) * scale), 0 for NaN.
void exp_logits(
    const float* logits,
    int n,
    float offset,
    float scale,
    float* out) {
  int i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const VF e = exp_lanes((load(logits + i) - splat(offset)) * splat(scale));
    store(out + i, e == e ? e : VF{});
  }
  if (i < n) {
    float tail[kLanes] = {};
    for (int j = 0; i + j < n; ++j) {
      tail[j] = (logits[i + j] - offset) * scale;
    }
    const VF e = exp_lanes(load(tail));
    store(tail, e == e ? e : VF{});
    for (int j = 0; i + j < n; ++j) {
      out[i + j] = tail[j];
    }
  }
}
