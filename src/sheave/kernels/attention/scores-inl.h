// Dot products of queries with the keys of a chunk of kKeyChunk positions, in
// two ways that give the same bits: element i of a product goes to lane
// i mod kSumLanes, in the order of i, and lanes are added as sum_lanes adds
// them.
//  - Few queries: rows of keys as they are stored; the lanes of kLanes sums are
//    added at once in a tree of exchanges.
//  - Many queries: the chunk is transposed once into a panel, in which a vector
//    holds one element of several keys. Lanes then are vectors of their own.

constexpr int kKeyChunk = kSumLanes;

/// Compile-time lists of lanes, for shuffles.
template <int... kIndex>
struct Lanes {};
#if SHEAVE_TARGET_LANES == 16
using AllLanes = Lanes<0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15>;
#elif SHEAVE_TARGET_LANES == 8
using AllLanes = Lanes<0, 1, 2, 3, 4, 5, 6, 7>;
#else
using AllLanes = Lanes<0, 1, 2, 3>;
#endif

/// Swaps the lanes of `a` that have the bit W in their index with the lanes of
/// `b`, W below, that don't:  W = 1:  a0 a1 a2 a3    a0 b0 a2 b2
///                                    b0 b1 b2 b3    a1 b1 a3 b3
template <int W, int... kIndex>
SHEAVE_KERNEL_INLINE void exchange(VF& a, VF& b, Lanes<kIndex...> /*all*/) {
  const VF low = __builtin_shufflevector(
      a,
      b,
      ((kIndex & W) != 0 ? kLanes + kIndex - W : kIndex)...);
  b = __builtin_shufflevector(
      a,
      b,
      ((kIndex & W) != 0 ? kLanes + kIndex : kIndex + W)...);
  a = low;
}

/// v[i], lane j becomes v[j], lane i.
template <int W = kLanes / 2>
SHEAVE_KERNEL_INLINE void transpose_lanes(VF (&v)[kLanes]) {
  for (int i = 0; i < kLanes; ++i) {
    if ((i & W) == 0) {
      exchange<W>(v[i], v[i + W], AllLanes{});
    }
  }
  if constexpr (W > 1) {
    transpose_lanes<W / 2>(v);
  }
}

struct Add {
  SHEAVE_KERNEL_INLINE VF of(VF a, VF b) {
    return a + b;
  }
};

/// b where it is larger, so never NaN in place of a number.
struct Larger {
  SHEAVE_KERNEL_INLINE VF of(VF a, VF b) {
    return b > a ? b : a;
  }
};

/// Lane i of v[0] becomes all of v[i]'s lanes put together.
template <typename Operation, int W = kLanes / 2>
SHEAVE_KERNEL_INLINE void fold_lanes(VF (&v)[kLanes]) {
  for (int i = 0; i < W; ++i) {
    exchange<W>(v[i], v[i + W], AllLanes{});
    v[i] = Operation::of(v[i], v[i + W]);
  }
  if constexpr (W > 1) {
    fold_lanes<Operation, W / 2>(v);
  }
}

/// The same for vectors in memory, kLanes floats apart.
template <typename Operation>
SHEAVE_KERNEL_INLINE VF fold_rows(const float* rows) {
  VF v[kLanes];
  for (int i = 0; i < kLanes; ++i) {
    v[i] = load(rows + i * kLanes);
  }
  fold_lanes<Operation>(v);
  return v[0];
}

/// The first steps of sum_lanes, down to one vector.
SHEAVE_KERNEL_INLINE VF add_parts(const VF (&parts)[kParts]) {
  if constexpr (kParts == 4) {
    return (parts[0] + parts[2]) + (parts[1] + parts[3]);
  } else if constexpr (kParts == 2) {
    return parts[0] + parts[1];
  } else {
    return parts[0];
  }
}

/// scores[p, j] = q[p] . k[j] for P queries and K rows of keys from `first` on.
template <int P, int K, typename Rows>
SHEAVE_KERNEL_INLINE void score_rows(
    const float* queries,
    const Rows& keys,
    int first,
    int width,
    float* scores) {
  static_assert(P * K <= kLanes);
  const auto stride = static_cast<size_t>(width);
  VF sums[P * K][kParts] = {};
  for (int i = 0; i < width; i += kSumLanes) {
    for (int part = 0; part < kParts; ++part) {
      const int at = i + part * kLanes;
      for (int j = 0; j < K; ++j) {
        const VF key = keys.at(first + j, at);
        for (int p = 0; p < P; ++p) {
          VF& sum = sums[p * K + j][part];
          sum = fmadd(load(queries + p * stride + at), key, sum);
        }
      }
    }
  }
  VF lanes[kLanes] = {};
  for (int i = 0; i < P * K; ++i) {
    lanes[i] = add_parts(sums[i]);
  }
  fold_lanes<Add>(lanes);
  float results[kLanes];
  store(results, lanes[0]);
  for (int p = 0; p < P; ++p) {
    __builtin_memcpy(
        scores + p * kAttentionBlock,
        results + p * K,
        K * sizeof(float));
  }
}

/// The same for a whole chunk of keys.
template <int P, typename Rows>
SHEAVE_KERNEL_INLINE void score_chunk_rows(
    const float* queries,
    const Rows& keys,
    int width,
    float* scores) {
  constexpr int kKeys = kLanes / (P == 3 ? 4 : P);
  for (int j = 0; j < kKeyChunk; j += kKeys) {
    score_rows<P, kKeys>(queries, keys, j, width, scores + j);
  }
}

/// panel[i, j] = keys[j, i] for a chunk of keys.
SHEAVE_KERNEL_INLINE void
make_panel(const float* keys, int width, float* panel) {
  for (int j = 0; j < kKeyChunk; j += kLanes) {
    for (int i = 0; i < width; i += kLanes) {
      VF v[kLanes];
      for (int k = 0; k < kLanes; ++k) {
        v[k] = load(keys + static_cast<size_t>(j + k) * width + i);
      }
      transpose_lanes(v);
      for (int k = 0; k < kLanes; ++k) {
        store(panel + static_cast<size_t>(i + k) * kKeyChunk + j, v[k]);
      }
    }
  }
}

/// The sums of the lanes `lane`, `lane` + W, ... of P queries' products with a
/// panel's keys. At the bottom of the recursion two lanes are summed up side by
/// side: 2 P kParts chains of additions hide each other's latency.
template <int W, int P>
SHEAVE_KERNEL_INLINE void sum_panel_lanes(
    const float* queries,
    const float* panel,
    int width,
    int lane,
    VF (&sums)[P][kParts]) {
  VF others[P][kParts] = {};
  if constexpr (W == kSumLanes / 2) {
    for (int i = lane; i < width; i += kSumLanes) {
      for (int part = 0; part < kParts; ++part) {
        const float* at = panel + i * kKeyChunk + part * kLanes;
        const VF key = load(at);
        const VF other = load(at + W * kKeyChunk);
        for (int p = 0; p < P; ++p) {
          const float* q = queries + p * width + i;
          sums[p][part] = fmadd(splat(q[0]), key, sums[p][part]);
          others[p][part] = fmadd(splat(q[W]), other, others[p][part]);
        }
      }
    }
  } else {
    sum_panel_lanes<2 * W>(queries, panel, width, lane, sums);
    sum_panel_lanes<2 * W>(queries, panel, width, lane + W, others);
  }
  for (int p = 0; p < P; ++p) {
    for (int part = 0; part < kParts; ++part) {
      sums[p][part] = sums[p][part] + others[p][part];
    }
  }
}

/// scores[p, j] = q[p] . k[j] for P queries and the keys of a panel.
template <int P>
SHEAVE_KERNEL_INLINE void score_panel(
    const float* queries,
    const float* panel,
    int width,
    float* scores) {
  VF sums[P][kParts] = {};
  sum_panel_lanes<1>(queries, panel, width, 0, sums);
  for (int p = 0; p < P; ++p) {
    for (int part = 0; part < kParts; ++part) {
      store(scores + p * kAttentionBlock + part * kLanes, sums[p][part]);
    }
  }
}
