// Stored keys and values, one row (a column of the cache) at a time, to
// float32.

/// For the parts of a tile's work that share no registers: in one function with
/// the others they would be spilled in inner loops.
#define SHEAVE_KERNEL_APART static __attribute__((noinline))

/// kLanes unsigned bytes as int32.
SHEAVE_KERNEL_INLINE VI widen_unsigned(const uint8_t* q) {
#if SHEAVE_TARGET_LANES == 16
  return (VI)_mm512_maskz_cvtepu8_epi32(
      0xFFFF,
      _mm_loadu_si128(reinterpret_cast<const __m128i*>(q)));
#elif SHEAVE_TARGET_LANES == 8
  return (VI)_mm256_cvtepu8_epi32(
      _mm_loadl_epi64(reinterpret_cast<const __m128i*>(q)));
#else
  return VI{q[0], q[1], q[2], q[3]};
#endif
}

/// kLanes packed nibbles, the low one of a byte first, as int32.
SHEAVE_KERNEL_INLINE VI widen_nibbles(const uint8_t* q) {
#if SHEAVE_TARGET_LANES == 16
  const VI shifts = {0, 4, 8, 12, 16, 20, 24, 28, 0, 4, 8, 12, 16, 20, 24, 28};
  const auto words = (VI)_mm512_mask_set1_epi32(
      _mm512_set1_epi32(static_cast<int32_t>(load_u32(q))),
      0xFF00,
      static_cast<int32_t>(load_u32(q + 4)));
  return (words >> shifts) & 15;
#elif SHEAVE_TARGET_LANES == 8
  const VI shifts = {0, 4, 8, 12, 16, 20, 24, 28};
  return ((static_cast<int32_t>(load_u32(q)) - VI{}) >> shifts) & 15;
#else
  return VI{q[0] & 15, q[0] >> 4, q[1] & 15, q[1] >> 4};
#endif
}

/// n floats of a plane, from element `first` on.
SHEAVE_KERNEL_INLINE void load_plain(
    FloatType type,
    const PlaneRows& plane,
    size_t first,
    int n,
    float* to) {
  const uint8_t* from = plane.data + first * (type == FloatType::kF32 ? 4 : 2);
  int i = 0;
  for (; type == FloatType::kBF16 && i + kLanes <= n; i += kLanes) {
    store(to + i, bfloats_to_floats(from + 2 * i));
  }
  to_float(type, from + 2 * i, n - i, to + i);
}

/// scale * q + bias for n elements of whole groups, rounded after the product
/// and after the sum as MLX does. kExact: products are, so they may be fused.
template <int kBits, bool kExact>
SHEAVE_KERNEL_INLINE void dequantize_groups(
    const AttentionTile& tile,
    const PlaneRows& plane,
    size_t first,
    int n,
    float* to) {
  // Locals: for all the compiler knows, what is stored may be the tile.
  const FloatType type = tile.plane_type;
  const int size = tile.group_size;
  const uint8_t* scales = plane.scales;
  const uint8_t* biases = plane.biases;
  const uint8_t* data = plane.data + first * kBits / 8;
  size_t group = first / static_cast<size_t>(size);
  for (const float* end = to + n; to != end; ++group) {
    const VF scale = splat(float_at(type, scales, group));
    const VF bias = splat(float_at(type, biases, group));
    for (const float* stop = to + size; to != stop; to += kLanes) {
      const VI quants = kBits == 8 ? widen_unsigned(data) : widen_nibbles(data);
      const VF q = __builtin_convertvector(quants, VF);
      store(to, kExact ? fmadd(q, scale, bias) : q * scale + bias);
      data += kLanes * kBits / 8;
    }
  }
}

template <int kBits>
SHEAVE_KERNEL_INLINE void load_quantized(
    const AttentionTile& tile,
    const PlaneRows& plane,
    size_t first,
    int n,
    float* to) {
  if (tile.plane_type == FloatType::kF32) {
    dequantize_groups<kBits, false>(tile, plane, first, n, to);
  } else { // 8 bits times 11 fit float32's 24
    dequantize_groups<kBits, true>(tile, plane, first, n, to);
  }
}

/// n elements of a plane, in whole columns, as float32.
SHEAVE_KERNEL_INLINE void load_elements(
    const AttentionTile& tile,
    const PlaneRows& plane,
    size_t first,
    int n,
    float* to) {
  if (tile.bits == 8) {
    load_quantized<8>(tile, plane, first, n, to);
  } else if (tile.bits == 4) {
    load_quantized<4>(tile, plane, first, n, to);
  } else {
    load_plain(tile.plane_type, plane, first, n, to);
  }
}

/// Columns [begin, end), each padded with zeros to `width` floats. Columns lie
/// back to back, so unpadded ones are one run of elements.
SHEAVE_KERNEL_INLINE void load_columns(
    const AttentionTile& tile,
    const PlaneRows& plane,
    int begin,
    int end,
    int width,
    float* to) {
  const int dims = tile.head_dim;
  const size_t first = static_cast<size_t>(begin) * dims;
  if (dims == width) {
    load_elements(tile, plane, first, (end - begin) * dims, to);
    return;
  }
  for (int i = 0; i < end - begin; ++i) {
    load_elements(tile, plane, first + static_cast<size_t>(i) * dims, dims, to);
    for (int j = dims; j < width; ++j) {
      to[j] = 0.0F;
    }
    to += width;
  }
}

/// The keys or values of positions [begin, end), one row of `width` floats
/// each.
SHEAVE_KERNEL_APART void load_positions(
    const AttentionTile& tile,
    const PlaneRows& plane,
    int begin,
    int end,
    int width,
    float* to) {
  // Counted from the oldest stored, positions below `turn` are in range 0.
  const int turn = tile.range_size[0];
  const int first = begin - tile.oldest_position;
  const int last = end - tile.oldest_position;
  const int middle = first > turn ? first : last < turn ? last : turn;
  const int shift0 = tile.range_begin[0];
  const int shift1 = tile.range_begin[1] - turn;
  if (first < middle) {
    load_columns(tile, plane, shift0 + first, shift0 + middle, width, to);
  }
  if (middle < last) {
    to += static_cast<size_t>(middle - first) * width;
    load_columns(tile, plane, shift1 + middle, shift1 + last, width, to);
  }
}

/// Rows of float32, as load_positions leaves them.
struct StagedRows {
  const float* data;
  size_t width;

  __attribute__((always_inline)) VF at(size_t row, size_t i) const {
    return load(data + row * width + i);
  }
};

/// How far ahead to ask for rows read in place. The processor's own prefetch
/// falls short of the strides of wide heads.
constexpr size_t kPrefetchBytes = 8192;

/// Rows of 16-bit floats where they are stored: reading them in place lets
/// arithmetic hide what memory takes.
template <FloatType kType>
struct StoredRows {
  const uint8_t* data;
  size_t width;

  __attribute__((always_inline)) VF at(size_t row, size_t i) const {
    const uint8_t* p = data + 2 * (row * width + i);
    __builtin_prefetch(p + kPrefetchBytes, 0, 2); // to the second cache
    return kType == FloatType::kF16 ? halves_to_floats(p)
                                    : bfloats_to_floats(p);
  }
};

/// Where the columns of positions [begin, end) are stored, if StoredRows can
/// read them: unpadded 16-bit floats, back to back. Else null.
SHEAVE_KERNEL_INLINE const uint8_t* stored_run(
    const AttentionTile& tile,
    const PlaneRows& plane,
    int begin,
    int end,
    int width) {
  const int turn = tile.range_size[0];
  const int first = begin - tile.oldest_position;
  const int last = end - tile.oldest_position;
  const bool whole = first >= turn || last <= turn;
  if (!whole || tile.bits != 0 || tile.plane_type == FloatType::kF32 ||
      tile.head_dim != width) {
    return nullptr;
  }
  const int column = first >= turn ? tile.range_begin[1] + first - turn
                                   : tile.range_begin[0] + first;
  return plane.data + 2 * static_cast<size_t>(column) * tile.head_dim;
}
