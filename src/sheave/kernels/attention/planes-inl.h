// Stored keys and values, one row (a column of the cache) at a time, to
// float32.

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

/// scale * q + bias of a row's groups, rounded after the product and after the
/// sum as MLX does.
template <int kBits>
SHEAVE_KERNEL_INLINE void load_quantized(
    const AttentionTile& tile,
    const PlaneRows& plane,
    size_t column,
    float* to) {
  const auto dims = static_cast<size_t>(tile.head_dim);
  const uint8_t* data = plane.data + column * dims * kBits / 8;
  const size_t groups = dims / tile.group_size;
  for (size_t group = 0; group < groups; ++group) {
    const size_t at = column * groups + group;
    const VF scale = splat(float_at(tile.plane_type, plane.scales, at));
    const VF bias = splat(float_at(tile.plane_type, plane.biases, at));
    for (int i = 0; i < tile.group_size; i += kLanes) {
      const VI q = kBits == 8 ? widen_unsigned(data) : widen_nibbles(data);
      store(to, __builtin_convertvector(q, VF) * scale + bias);
      data += kLanes * kBits / 8;
      to += kLanes;
    }
  }
}

/// One column's key or value, with zeros up to `width`.
SHEAVE_KERNEL_INLINE void load_column(
    const AttentionTile& tile,
    const PlaneRows& plane,
    size_t column,
    int width,
    float* to) {
  if (tile.bits == 8) {
    load_quantized<8>(tile, plane, column, to);
  } else if (tile.bits == 4) {
    load_quantized<4>(tile, plane, column, to);
  } else {
    const size_t element = tile.plane_type == FloatType::kF32 ? 4 : 2;
    const uint8_t* from = plane.data + column * element * tile.head_dim;
    to_float(tile.plane_type, from, tile.head_dim, to);
  }
  for (int i = tile.head_dim; i < width; ++i) {
    to[i] = 0.0F;
  }
}

/// The physical column of a position.
SHEAVE_KERNEL_INLINE size_t column_of(const AttentionTile& tile, int position) {
  const int i = position - tile.oldest_position;
  return static_cast<size_t>(
      i < tile.range_size[0] ? tile.range_begin[0] + i
                             : tile.range_begin[1] + i - tile.range_size[0]);
}

/// The keys or values of positions [begin, end), one row of `width` floats
/// each.
SHEAVE_KERNEL_INLINE void load_positions(
    const AttentionTile& tile,
    const PlaneRows& plane,
    int begin,
    int end,
    int width,
    float* to) {
  for (int position = begin; position < end; ++position) {
    load_column(tile, plane, column_of(tile, position), width, to);
    to += width;
  }
}
