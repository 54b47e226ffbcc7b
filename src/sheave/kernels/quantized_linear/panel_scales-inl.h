// Reading the scales of a panel, 16 rows side by side.

/// kLanes bfloat16 as float32.
SHEAVE_KERNEL_INLINE VF bfloats_to_floats(const uint8_t* p) {
  VI words;
  for (int i = 0; i < kLanes; ++i) {
    words[i] = static_cast<int32_t>(
        static_cast<uint32_t>(load_u16(p + 2 * i)) << 16);
  }
  return (VF)words;
}

/// 16 floats of a stored type.
SHEAVE_KERNEL_INLINE void
load_panel_floats(PackedScales type, const uint8_t* from, VF (&out)[kParts]) {
  for (int part = 0; part < kParts; ++part) {
    const int i = part * kLanes;
    switch (type) {
      case PackedScales::kF32:
        __builtin_memcpy(&out[part], from + 4 * i, sizeof(VF));
        break;
      case PackedScales::kF16:
        out[part] = halves_to_floats(from + 2 * i);
        break;
      case PackedScales::kBF16:
        out[part] = bfloats_to_floats(from + 2 * i);
        break;
      case PackedScales::kSuper:
        out[part] = __builtin_convertvector(
            widen(reinterpret_cast<const int8_t*>(from) + i),
            VF);
        break;
    }
  }
}

/// Walks the scales of a panel in the order of its columns.
struct PanelScales {
  PackedScales type;
  bool has_bias;
  int columns_per_scale;
  const uint8_t* at;
  VF super_scale[kParts];
  VF super_bias[kParts];
  VF scale[kParts];
  VF bias[kParts];

  /// Sets scale and bias to those of the columns from `column` on, which are
  /// reached one scale after another.
  SHEAVE_KERNEL_INLINE_METHOD void advance(int column) {
    if ((column & (columns_per_scale - 1)) != 0) {
      return; // still the same
    }
    if (type != PackedScales::kSuper) {
      next(type, scale);
      if (has_bias) {
        next(type, bias);
      }
      return;
    }
    if ((column & 255) == 0) {
      next(PackedScales::kF16, super_scale);
      if (has_bias) {
        next(PackedScales::kF16, super_bias);
      }
    }
    next(type, scale);
    if (has_bias) {
      next(type, bias);
    }
    for (int part = 0; part < kParts; ++part) {
      scale[part] = scale[part] * super_scale[part];
      bias[part] = bias[part] * super_bias[part];
    }
  }

  SHEAVE_KERNEL_INLINE_METHOD void next(PackedScales stored, VF (&out)[kParts]) {
    load_panel_floats(stored, at, out);
    at += kPanelRows * (stored == PackedScales::kSuper ? 1
                        : stored == PackedScales::kF32 ? 4
                                                       : 2);
  }
};

SHEAVE_KERNEL_INLINE PanelScales
start_scales(const PackedLayout& layout, const uint8_t* panel) {
  PanelScales scales = {};
  scales.type = layout.scales;
  scales.has_bias = layout.has_bias;
  scales.columns_per_scale = layout.scale_group;
  scales.at = panel;
  return scales;
}

/// Where a kernel reads some tokens of a tile, group after group.
struct TileView {
  const int8_t* quants;
  const float* scales;
  const int32_t* starts;
  const float* bias_sums;

  SHEAVE_KERNEL_INLINE_METHOD void next_sums() {
    starts += kTokenTile;
    bias_sums += kTokenTile;
  }

  SHEAVE_KERNEL_INLINE_METHOD void next_group() {
    quants += kTokenTile * 32;
    scales += kTokenTile;
  }
};

/// The tokens from place `place` of tile `tile` on, at their first group.
SHEAVE_KERNEL_INLINE TileView
view_tile(const PackedTask& task, int tile, int place) {
  const size_t groups = task.x.k / 32;
  const size_t sums = task.layout.scale_group < 32 ? 2 * groups : groups;
  const size_t group_at = tile * groups * kTokenTile + place;
  const size_t sum_at = tile * sums * kTokenTile + place;
  return {
      task.x.quants + group_at * 32,
      task.x.scales + group_at,
      task.starts + sum_at,
      task.bias_sums + sum_at};
}
