#include "sheave/kernels/packed_weight.h"

#include <mlx/transforms.h>
#include <mlx/types/half_types.h>

#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "sheave/base/check.h"
#include "sheave/kernels/linear/linear.h"
#include "sheave/kernels/packed_row.h"
#include "sheave/kernels/runtime.h"
#include "sheave/kernels/weight_rows.h"

namespace sheave::kernels {
namespace {

size_t whole_lines(size_t bytes) {
  return (bytes + 63) / 64 * 64;
}

size_t scale_size(PackedScales scales) {
  switch (scales) {
    case PackedScales::kF32:
      return 4;
    case PackedScales::kF16:
    case PackedScales::kBF16:
      return 2;
    case PackedScales::kSuper:
      return 1;
  }
  return 0;
}

PackedScales affine_scales(FloatType type) {
  switch (type) {
    case FloatType::kF32:
      return PackedScales::kF32;
    case FloatType::kF16:
      return PackedScales::kF16;
    case FloatType::kBF16:
      return PackedScales::kBF16;
  }
  return PackedScales::kF32;
}

PackedLayout packed_layout(const Weight& weight) {
  const auto layout = [&](int bits, int zero, int scale_group, bool has_bias) {
    const bool super = weight.format == WeightFormat::kQ4_K ||
                       weight.format == WeightFormat::kQ5_K ||
                       weight.format == WeightFormat::kQ6_K;
    return PackedLayout{
        .bits = bits,
        .zero = zero,
        .scale_group = scale_group,
        .has_bias = has_bias,
        .scales = super ? PackedScales::kSuper : PackedScales::kF16,
        .in_features = weight.in_features};
  };
  switch (weight.format) {
    case WeightFormat::kQ4_0:
      return layout(4, 8, 32, false);
    case WeightFormat::kQ4_1:
      return layout(4, 0, 32, true);
    case WeightFormat::kQ5_0:
      return layout(5, 16, 32, false);
    case WeightFormat::kQ5_1:
      return layout(5, 0, 32, true);
    case WeightFormat::kQ8_0:
      return layout(8, 128, 32, false);
    case WeightFormat::kQ4_K:
      return layout(4, 0, 32, true);
    case WeightFormat::kQ5_K:
      return layout(5, 0, 32, true);
    case WeightFormat::kQ6_K:
      return layout(6, 32, 16, false);
    default: {
      PackedLayout affine = layout(weight.bits, 0, weight.group_size, true);
      affine.scales = affine_scales(float_type(weight.scales->dtype()));
      return affine;
    }
  }
}

/// Adds the 512 quants of 32 columns of a panel, quants[row][column], to its
/// planes: bits [low, low + width) of each.
uint8_t* write_plane(
    const uint8_t (&quants)[kPanelRows][32],
    int low,
    int width,
    uint8_t* out) {
  const int per_byte = 8 / width;
  const auto mask = static_cast<uint8_t>((1U << width) - 1);
  for (int first = 0; first < 8; first += per_byte) {
    for (int row = 0; row < kPanelRows; ++row) {
      for (int j = 0; j < 4; ++j) {
        unsigned byte = 0;
        for (int i = 0; i < per_byte; ++i) {
          const unsigned q = quants[row][4 * (first + i) + j];
          byte |= (q >> low & mask) << (i * width);
        }
        out[4 * row + j] = static_cast<uint8_t>(byte);
      }
    }
    out += 64;
  }
  return out;
}

void write_group(
    const uint8_t (&quants)[kPanelRows][32],
    int bits,
    uint8_t* out) {
  if (bits == 8) {
    write_plane(quants, 0, 8, out);
    return;
  }
  int low = 0;
  for (const int width : {4, 2, 1}) {
    if ((bits & width) != 0) {
      out = write_plane(quants, low, width, out);
      low += width;
    }
  }
}

/// Copies one row's scales to their places among the panel's.
void write_scales(
    const PackedLayout& layout,
    const PackedRow& row,
    int place,
    uint8_t* out) {
  const size_t size = scale_size(layout.scales);
  const int groups = layout.in_features / layout.scale_group;
  const int groups_per_super = 256 / layout.scale_group;
  const auto put = [&](const uint8_t* value, size_t bytes) {
    std::memcpy(out + static_cast<size_t>(place) * bytes, value, bytes);
    out += kPanelRows * bytes;
  };
  for (int group = 0; group < groups; ++group) {
    const auto g = static_cast<size_t>(group);
    if (layout.scales == PackedScales::kSuper &&
        group % groups_per_super == 0) {
      const size_t s = g / static_cast<size_t>(groups_per_super);
      put(row.super_scales.data() + 2 * s, 2);
      if (layout.has_bias) {
        put(row.super_biases.data() + 2 * s, 2);
      }
    }
    put(row.scales.data() + g * size, size);
    if (layout.has_bias) {
      put(row.biases.data() + g * size, size);
    }
  }
}

/// Packs the rows [first, first + 16) as far as there are any.
void write_panel(
    const WeightRows& rows,
    const PackedLayout& layout,
    int first,
    int end,
    uint8_t* panel) {
  std::vector<PackedRow> unpacked(kPanelRows);
  const auto columns = static_cast<size_t>(layout.in_features);
  for (int i = 0; i < kPanelRows; ++i) {
    PackedRow& row = unpacked[static_cast<size_t>(i)];
    if (first + i < end) {
      read_packed_row(rows, first + i, row);
      write_scales(layout, row, i, panel);
    } else {
      row.quants.assign(columns, 0);
    }
  }
  uint8_t* out = panel + layout.scale_bytes();
  for (size_t column = 0; column < columns; column += 32) {
    uint8_t quants[kPanelRows][32];
    for (size_t i = 0; i < kPanelRows; ++i) {
      std::memcpy(quants[i], unpacked[i].quants.data() + column, 32);
    }
    write_group(quants, layout.bits, out);
    out += static_cast<ptrdiff_t>(64) * layout.bits;
  }
}

/// The quant of a panel's row `row` at `column`.
int quant_at(
    const PackedLayout& layout,
    const uint8_t* quants,
    int row,
    int column) {
  const uint8_t* group =
      quants + static_cast<size_t>(column / 32) * 64 * layout.bits;
  const int r = column % 32 / 4;
  const int byte = 4 * row + column % 4;
  if (layout.bits == 8) {
    return group[64 * r + byte];
  }
  int quant = 0;
  int low = 0;
  for (const int width : {4, 2, 1}) {
    if ((layout.bits & width) == 0) {
      continue;
    }
    const int per_byte = 8 / width;
    const int bits = group[r / per_byte * 64 + byte] >> (r % per_byte * width);
    quant |= (bits & ((1 << width) - 1)) << low;
    low += width;
    group += static_cast<ptrdiff_t>(64) * width;
  }
  return quant;
}

float stored_float(PackedScales type, const uint8_t* bytes) {
  const auto as = [&](auto value) {
    std::memcpy(&value, bytes, sizeof(value));
    return static_cast<float>(value);
  };
  switch (type) {
    case PackedScales::kF32:
      return as(float{});
    case PackedScales::kF16:
      return as(mx::float16_t{});
    case PackedScales::kBF16:
      return as(mx::bfloat16_t{});
    case PackedScales::kSuper:
      return as(int8_t{});
  }
  return 0;
}

struct GroupScale {
  float scale;
  float bias;
};

/// The scales of a panel's row, one per scale group.
std::vector<GroupScale>
row_scales(const PackedLayout& layout, const uint8_t* panel, int row) {
  std::vector<GroupScale> result;
  const auto next = [&](PackedScales type) {
    const size_t size = scale_size(type);
    const float value =
        stored_float(type, panel + static_cast<size_t>(row) * size);
    panel += kPanelRows * size;
    return value;
  };
  const bool super = layout.scales == PackedScales::kSuper;
  float super_scale = 1;
  float super_bias = 1;
  for (int i = 0; i < layout.in_features; i += layout.scale_group) {
    if (super && i % 256 == 0) {
      super_scale = next(PackedScales::kF16);
      super_bias = layout.has_bias ? next(PackedScales::kF16) : 0;
    }
    const float scale = super_scale * next(layout.scales);
    const float bias = layout.has_bias ? super_bias * next(layout.scales) : 0;
    result.push_back({scale, bias});
  }
  return result;
}

void unpack_row(
    const PackedLayout& layout,
    const uint8_t* panel,
    int row,
    float* out) {
  const auto scales = row_scales(layout, panel, row);
  const uint8_t* quants = panel + layout.scale_bytes();
  for (int i = 0; i < layout.in_features; ++i) {
    const GroupScale& group =
        scales[static_cast<size_t>(i / layout.scale_group)];
    const int q = quant_at(layout, quants, row, i) - layout.zero;
    const float scaled = group.scale * static_cast<float>(q);
    out[i] = layout.has_bias ? scaled + group.bias : scaled;
  }
}

} // namespace

size_t PackedLayout::scale_bytes() const {
  const auto groups = static_cast<size_t>(in_features / scale_group);
  const size_t per_group = has_bias ? 2 : 1;
  const size_t supers = scales == PackedScales::kSuper
                            ? static_cast<size_t>(in_features) / 256
                            : 0;
  return whole_lines(
      kPanelRows * per_group * (groups * scale_size(scales) + supers * 2));
}

size_t PackedLayout::panel_bytes() const {
  return scale_bytes() +
         static_cast<size_t>(in_features) / 32 * static_cast<size_t>(64 * bits);
}

bool packable(const Weight& weight) {
  switch (weight.format) {
    case WeightFormat::kF32:
    case WeightFormat::kF16:
    case WeightFormat::kBF16:
      return false;
    case WeightFormat::kAffine: {
      const int group = weight.group_size;
      const bool known_group =
          group == 16 || group == 32 || group == 64 || group == 128;
      return known_group && weight.in_features % 32 == 0;
    }
    default:
      return true;
  }
}

PackedWeight pack(const Weight& weight, SlabAllocator& slabs) {
  check_weight("pack", weight);
  if (!packable(weight)) {
    throw std::invalid_argument(
        std::string("[pack] a weight of format ") +
        weight_format_name(weight.format) + " and " +
        std::to_string(weight.in_features) + " columns can't be packed");
  }
  const PackedLayout layout = packed_layout(weight);
  const int panels = panels_of(weight.out_features);
  const size_t panel_bytes = layout.panel_bytes();
  const auto piece = slabs.allocate(panels, panel_bytes);

  std::vector<mx::array> arrays;
  append_arrays(weight, arrays);
  mx::eval(arrays);
  const WeightRows rows = WeightSpec(weight).rows(arrays, 0);
  thread_pool().run(panels, [&](int panel, int) {
    write_panel(
        rows,
        layout,
        panel * kPanelRows,
        weight.out_features,
        piece.bytes + static_cast<size_t>(panel) * panel_bytes);
  });
  return {
      .layout = layout,
      .out_features = weight.out_features,
      .data = piece.array};
}

mx::array dequantize(const PackedWeight& weight) {
  mx::array data = weight.data;
  data.eval();
  const auto columns = static_cast<size_t>(weight.layout.in_features);
  std::vector<float> values(static_cast<size_t>(weight.out_features) * columns);
  thread_pool().run(weight.out_features, [&](int row, int) {
    unpack_row(
        weight.layout,
        data.data<uint8_t>() +
            static_cast<size_t>(row / kPanelRows) * weight.layout.panel_bytes(),
        row % kPanelRows,
        values.data() + static_cast<size_t>(row) * columns);
  });
  return mx::array(
      values.data(),
      {weight.out_features, weight.layout.in_features});
}

} // namespace sheave::kernels
