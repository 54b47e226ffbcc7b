// A panel of 16 rows with M tokens in plain code: quants are unpacked to bytes
// and multiplied four rows at a time.

constexpr int kTileTokens = 4;

/// Adds a plane's bits, kWidth wide, to the quants at bit `low`.
SHEAVE_KERNEL_INLINE const uint8_t*
add_plane(const uint8_t* plane, int width, int low, uint8_t* quants) {
  const int per_byte = 8 / width;
  const int mask = (1 << width) - 1;
  for (int r = 0; r < 8; ++r) {
    const uint8_t* line = plane + r / per_byte * 64;
    const int right = r % per_byte * width;
    for (int i = 0; i < 64; ++i) {
      const int bits = (line[i] >> right & mask) << low;
      quants[64 * r + i] = static_cast<uint8_t>(quants[64 * r + i] | bits);
    }
  }
  return plane + 64 * width;
}

/// The eight registers of a group, 64 bytes each.
SHEAVE_KERNEL_INLINE void
unpack_group(const uint8_t* group, int bits, uint8_t* quants) {
  if (bits == 8) {
    __builtin_memcpy(quants, group, 512);
    return;
  }
  __builtin_memset(quants, 0, 512);
  int low = 0;
  for (int width = 4; width > 0; width /= 2) {
    if ((bits & width) != 0) {
      group = add_plane(group, width, low, quants);
      low += width;
    }
  }
}

/// sums[n] += the products of a register's four columns of row n with a
/// token's.
SHEAVE_KERNEL_INLINE void add_quads(
    const uint8_t* weights,
    const int8_t* quants,
    int32_t (&sums)[kPanelRows]) {
  for (int n = 0; n < kPanelRows; ++n) {
    for (int j = 0; j < 4; ++j) {
      sums[n] += weights[4 * n + j] * quants[j];
    }
  }
}

/// The scaled products of `count` registers from `first` on, the columns of
/// sum `index`.
SHEAVE_KERNEL_INLINE void add_products(
    const PackedTask& task,
    int token,
    int group,
    int index,
    const uint8_t* weights,
    int first,
    int count,
    const PanelScales& scales,
    VF (&sums)[kParts]) {
  const auto row = static_cast<size_t>(token);
  const size_t per_row = task.x.k / (4 * count);
  const size_t groups = task.x.k / 32;
  const int8_t* quants = task.x.quants + row * task.x.stride + 32 * group;
  int32_t integers[kPanelRows];
  for (int n = 0; n < kPanelRows; ++n) {
    integers[n] = task.starts[row * per_row + index];
  }
  for (int r = first; r < first + count; ++r) {
    add_quads(weights + 64 * r, quants + 4 * r, integers);
  }
  for (int part = 0; part < kParts; ++part) {
    VI lanes;
    __builtin_memcpy(&lanes, integers + part * kLanes, sizeof(lanes));
    const VF factor =
        scales.scale[part] * splat(task.x.scales[row * groups + group]);
    sums[part] =
        fmadd(factor, __builtin_convertvector(lanes, VF), sums[part]);
    if (task.layout.has_bias) {
      sums[part] = fmadd(
          scales.bias[part],
          splat(task.bias_sums[row * per_row + index]),
          sums[part]);
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
  PanelScales scales = start_scales(task.layout, panel);
  const uint8_t* at = panel + task.scale_bytes;
  const int registers = task.layout.scale_group >= 32 ? 8 : 4;
  for (int group = 0; group < task.x.k / 32; ++group) {
    uint8_t weights[512];
    unpack_group(at, kBits, weights);
    at += 64 * kBits;
    for (int first = 0; first < 8; first += registers) {
      scales.advance(32 * group + 4 * first);
      const int index = (8 * group + first) / registers;
      for (int m = 0; m < M; ++m) {
        add_products(
            task,
            token + m,
            group,
            index,
            weights,
            first,
            registers,
            scales,
            sums[m]);
      }
    }
  }
}

int packed_start_factor(const PackedLayout& layout) {
  return -layout.zero;
}
