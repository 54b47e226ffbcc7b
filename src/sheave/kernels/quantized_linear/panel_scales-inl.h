// Reading the scales of a panel, 16 rows side by side.

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

/// The scales of a panel as floats, one line of 16 rows per integer sum.
struct PanelScales {
  const float* scales; // [K / sum_columns, 16]
  const float* biases; // the same; null without biases
};

/// A factor of the panel's rows: one line of it.
struct PanelLine {
  VF parts[kParts];
};

/// Takes the next line of stored floats.
SHEAVE_KERNEL_INLINE PanelLine
next_line(PackedScales type, const uint8_t*& at) {
  PanelLine line = {};
  load_panel_floats(type, at, line.parts);
  at += kPanelRows * (type == PackedScales::kSuper ? 1
                      : type == PackedScales::kF32 ? 4
                                                   : 2);
  return line;
}

SHEAVE_KERNEL_INLINE void store_line(const PanelLine& line, float* to) {
  for (int part = 0; part < kParts; ++part) {
    store(to + part * kLanes, line.parts[part]);
  }
}

SHEAVE_KERNEL_INLINE PanelLine
multiply_lines(const PanelLine& a, const PanelLine& b) {
  PanelLine product;
  for (int part = 0; part < kParts; ++part) {
    product.parts[part] = a.parts[part] * b.parts[part];
  }
  return product;
}

/// Writes the panel's scales to scratch memory, once for all tokens.
SHEAVE_KERNEL_INLINE PanelScales
expand_scales(const PackedTask& task, const uint8_t* panel) {
  const PackedLayout& layout = task.layout;
  const bool super = layout.scales == PackedScales::kSuper;
  const int step = layout.scale_group < 32 ? layout.scale_group : 32;
  float* scales = task.scratch;
  float* biases = task.scratch + kPanelRows * (layout.in_features / step);
  float* scale_to = scales;
  float* bias_to = biases;
  PanelLine super_scale = {};
  PanelLine super_bias = {};
  PanelLine scale = {};
  PanelLine bias = {};
  for (int column = 0; column < layout.in_features; column += step) {
    if (super && (column & 255) == 0) {
      super_scale = next_line(PackedScales::kF16, panel);
      super_bias =
          layout.has_bias ? next_line(PackedScales::kF16, panel) : super_bias;
    }
    if ((column & (layout.scale_group - 1)) == 0) {
      scale = next_line(layout.scales, panel);
      scale = super ? multiply_lines(scale, super_scale) : scale;
      if (layout.has_bias) {
        bias = next_line(layout.scales, panel);
        bias = super ? multiply_lines(bias, super_bias) : bias;
      }
    }
    store_line(scale, scale_to);
    scale_to += kPanelRows;
    if (layout.has_bias) {
      store_line(bias, bias_to);
      bias_to += kPanelRows;
    }
  }
  return {scales, layout.has_bias ? biases : nullptr};
}

/// Where a kernel reads some tokens of a tile and the panel's scales, integer
/// sum after integer sum.
struct TileView {
  const int8_t* quants;
  const float* x_scales;
  const int32_t* starts;
  const float* bias_sums;
  const float* scales;
  const float* biases; // null without biases

  SHEAVE_KERNEL_INLINE_METHOD void next_sum() {
    starts += kTokenTile;
    bias_sums += kTokenTile;
    scales += kPanelRows;
    biases += biases == nullptr ? 0 : kPanelRows;
  }

  SHEAVE_KERNEL_INLINE_METHOD void next_group() {
    quants += kTokenTile * 32;
    x_scales += kTokenTile;
  }
};

/// The tokens from place `place` of tile `tile` on, at their first group.
SHEAVE_KERNEL_INLINE TileView view_tile(
    const PackedTask& task,
    const PanelScales& scales,
    int tile,
    int place) {
  const size_t groups = task.x.k / 32;
  const size_t sums = task.layout.scale_group < 32 ? 2 * groups : groups;
  const size_t group_at = tile * groups * kTokenTile + place;
  const size_t sum_at = tile * sums * kTokenTile + place;
  return {
      task.x.quants + group_at * 32,
      task.x.scales + group_at,
      task.starts + sum_at,
      task.bias_sums + sum_at,
      scales.scales,
      scales.biases};
}
