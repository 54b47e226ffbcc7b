// The online softmax of a tile: what each (token, head) pair has summed up so
// far, how a block of scores joins it, and how the sums of two spans merge.

constexpr float kNegativeInfinity = -__builtin_inff();

/// Running results of a tile's pairs: the largest score, the weights' total
/// and the weighted values, both relative to that score.
struct AttentionSums {
  float* values; // [pairs, D padded]
  float* maxima; // [padded(pairs)]
  float* totals; // [padded(pairs)]
};

/// The three within attention_sums_floats(pairs, head_dim).
SHEAVE_KERNEL_INLINE AttentionSums
divide_sums(float* memory, int pairs, int width) {
  AttentionSums s;
  s.values = memory;
  s.maxima = s.values + static_cast<size_t>(pairs) * width;
  s.totals = s.maxima + padded(pairs);
  return s;
}

SHEAVE_KERNEL_INLINE void
clear_sums(const AttentionSums& sums, int pairs, int width) {
  for (int pair = 0; pair < padded(pairs); ++pair) {
    sums.maxima[pair] = kNegativeInfinity;
    sums.totals[pair] = 0.0F;
  }
  for (int i = 0; i < pairs * width; ++i) {
    sums.values[i] = 0.0F;
  }
}

/// What to subtract from scores of which `maximum` is the largest: 0 while
/// there are none, so that weights are e^-infinity = 0 and not NaN.
SHEAVE_KERNEL_INLINE VF shift_of(VF maximum) {
  return maximum == splat(kNegativeInfinity) ? splat(0.0F) : maximum;
}

/// Adds the sums of later positions. Sums of nothing leave `to` as it is.
SHEAVE_KERNEL_INLINE void merge_sums(
    const AttentionSums& from,
    int pairs,
    int width,
    const AttentionSums& to) {
  float to_factors[kAttentionPairs];
  float from_factors[kAttentionPairs];
  for (int i = 0; i < pairs; i += kLanes) {
    const VF maximum = Larger::of(load(to.maxima + i), load(from.maxima + i));
    const VF a = exp_lanes(load(to.maxima + i) - shift_of(maximum));
    const VF b = exp_lanes(load(from.maxima + i) - shift_of(maximum));
    const VF total = load(to.totals + i) * a;
    store(to.totals + i, fmadd(load(from.totals + i), b, total));
    store(to.maxima + i, maximum);
    store(to_factors + i, a);
    store(from_factors + i, b);
  }
  for (int pair = 0; pair < pairs; ++pair) {
    const size_t row = static_cast<size_t>(pair) * width;
    for (int i = 0; i < width; i += kLanes) {
      float* at = to.values + row + i;
      const VF sum = load(at) * splat(to_factors[pair]);
      const VF more = load(from.values + row + i);
      store(at, fmadd(more, splat(from_factors[pair]), sum));
    }
  }
}

SHEAVE_KERNEL_INLINE VF softcap_lanes(VF score, VF cap) {
  // cap * tanh(score / cap), tanh(u) = 2 sigmoid(2 u) - 1
  const VF u = score / cap;
  const VF two = splat(2.0F);
  return cap * (times_sigmoid(two, two * u) - splat(1.0F));
}

/// Part of a block: keys begin .. end - 1, counted from the block's first
/// position.
struct KeyRange {
  int begin;
  int end;
};

/// Of a pair's scores, caps those in vectors that `seen` touches and sets to
/// -infinity what lies outside. Returns the largest of each lane.
SHEAVE_KERNEL_INLINE VF
mask_scores(float* scores, const KeyRange& seen, float softcap) {
  VI index;
  for (int i = 0; i < kLanes; ++i) {
    index[i] = i;
  }
  const VF nothing = splat(kNegativeInfinity);
  VF largest = nothing;
  for (int j = seen.begin / kLanes * kLanes; j < seen.end; j += kLanes) {
    VF score = load(scores + j);
    if (softcap > 0) {
      score = softcap_lanes(score, splat(softcap));
    }
    score = index < seen.begin - j ? nothing : score;
    score = index < seen.end - j ? score : nothing;
    store(scores + j, score);
    largest = Larger::of(largest, score);
  }
  return largest;
}

/// Turns a pair's masked scores into weights, in place, and those of `part`
/// that aren't `seen` to 0. Returns the sums of the weights, as far as
/// sum_lanes adds up whole vectors.
SHEAVE_KERNEL_INLINE VF weigh_scores(
    float* scores,
    const KeyRange& part,
    const KeyRange& seen,
    float shift) {
  VF sums[kParts] = {};
  for (int j = part.begin / kSumLanes * kSumLanes; j < part.end;
       j += kSumLanes) {
    for (int i = 0; i < kParts; ++i) {
      const int at = j + i * kLanes;
      VF weights = splat(0.0F);
      if (at + kLanes > seen.begin && at < seen.end) {
        weights = exp_lanes(load(scores + at) - splat(shift));
        sums[i] = sums[i] + weights;
      }
      store(scores + at, weights);
    }
  }
  return add_parts(sums);
}

/// What a block's scores do to its pairs; each array is of padded(pairs).
struct BlockSums {
  float* lanes;   // [pairs, kLanes]: a vector per pair, still to be folded
  float* shifts;  // what to subtract from the scores
  float* factors; // what the pair's sums so far are worth
};

/// Raises the maxima to those of a block, of which block.lanes holds the
/// largest scores. A block of nothing leaves a pair's maximum, with a factor of
/// 1 (or 0 where there are no sums yet).
SHEAVE_KERNEL_INLINE void
raise_maxima(const BlockSums& block, int pairs, const AttentionSums& sums) {
  for (int i = 0; i < pairs; i += kLanes) {
    const VF old = load(sums.maxima + i);
    const VF maximum =
        Larger::of(old, fold_rows<Larger>(block.lanes + i * kLanes));
    store(block.factors + i, exp_lanes(old - shift_of(maximum)));
    store(block.shifts + i, shift_of(maximum));
    store(sums.maxima + i, maximum);
  }
}

/// Adds a block's weights, of which block.lanes holds the sums.
SHEAVE_KERNEL_INLINE void
raise_totals(const BlockSums& block, int pairs, const AttentionSums& sums) {
  for (int i = 0; i < pairs; i += kLanes) {
    const VF total = load(sums.totals + i) * load(block.factors + i);
    store(sums.totals + i, total + fold_rows<Add>(block.lanes + i * kLanes));
  }
}
