#include "sheave/kernels/attention/kv_view_check.h"

#include <mlx/utils.h>

#include <algorithm>
#include <sstream>
#include <stdexcept>
#include <string>

#include "sheave/kernels/kernel_table.h"
#include "sheave/kernels/weight_rows.h"

namespace sheave::kernels {
namespace {

[[noreturn]] void fail(const std::string& message) {
  throw std::invalid_argument("[attention] " + message);
}

void check_queries(const mx::array& queries, const KVView& view) {
  if (queries.ndim() != 3 || queries.shape(1) < 1 || queries.shape(2) < 1 ||
      queries.shape(2) > 512) {
    std::ostringstream message;
    message << "expected queries [T, Hq, D], D <= 512, got " << queries.shape();
    fail(message.str());
  }
  if (view.planes.empty()) {
    fail("a view without planes");
  }
}

/// Hkv, once it fits the queries.
int check_heads(const mx::array& queries, const KVView& view) {
  const mx::array& keys = view.planes[0].keys;
  const int heads = queries.shape(1);
  const int kv_heads = keys.ndim() == 4 ? keys.shape(1) : 0;
  if (kv_heads < 1 || heads % kv_heads != 0) {
    std::ostringstream message;
    message << "expected planes [B, Hkv, S, D], Hkv a divisor of " << heads
            << ", got " << keys.shape();
    fail(message.str());
  }
  if (heads / kv_heads > kAttentionPairs) {
    fail(
        "more than " + std::to_string(kAttentionPairs) +
        " query heads share a K/V head");
  }
  return kv_heads;
}

void check_shape(
    const char* what,
    const mx::array& x,
    const mx::Shape& wanted) {
  if (x.shape() != wanted) {
    std::ostringstream message;
    message << "expected " << what << " " << wanted << ", got " << x.shape();
    fail(message.str());
  }
}

bool is_quantization(const KVPlanes& planes, int head_dim) {
  const int size = planes.group_size;
  return (planes.bits == 4 || planes.bits == 8) &&
         (size == 32 || size == 64 || size == 128) && head_dim % size == 0 &&
         planes.key_scales && planes.key_biases && planes.value_scales &&
         planes.value_biases && planes.keys.dtype() == mx::uint32 &&
         planes.values.dtype() == mx::uint32;
}

void check_quantized(const KVPlanes& planes, const mx::Shape& floats) {
  const int head_dim = floats[3];
  if (!is_quantization(planes, head_dim)) {
    fail(
        "expected planes quantized as uint32 in 4 or 8 bits, in groups of 32, "
        "64 or 128 that divide " +
        std::to_string(head_dim) + ", with scales and biases, got " +
        std::to_string(planes.bits) + " bits in groups of " +
        std::to_string(planes.group_size));
  }
  mx::Shape packed = floats;
  packed[3] = head_dim * planes.bits / 32;
  check_shape("quantized keys", planes.keys, packed);
  check_shape("quantized values", planes.values, packed);
  mx::Shape groups = floats;
  groups[3] = head_dim / planes.group_size;
  for (const auto* x :
       {&planes.key_scales,
        &planes.key_biases,
        &planes.value_scales,
        &planes.value_biases}) {
    check_shape("scales and biases", **x, groups);
    if ((*x)->dtype() != planes.key_scales->dtype()) {
      fail("expected scales and biases of one dtype");
    }
  }
  float_type(planes.key_scales->dtype());
}

void check_planes(const KVPlanes& planes, int kv_heads, int head_dim) {
  if (planes.keys.ndim() != 4) {
    fail("expected planes of 4 dims");
  }
  const mx::Shape floats = {
      planes.keys.shape(0),
      kv_heads,
      planes.keys.shape(2),
      head_dim};
  if (planes.bits != 0) {
    check_quantized(planes, floats);
    return;
  }
  check_shape("keys", planes.keys, floats);
  check_shape("values", planes.values, floats);
  float_type(planes.keys.dtype());
  if (planes.values.dtype() != planes.keys.dtype()) {
    fail("expected keys and values of one dtype");
  }
}

/// How many columns the row's ranges hold, once they lie within the planes.
int check_ranges(const RowView& row, int plane_columns) {
  int columns = 0;
  for (const ColumnRange& range : row.ranges) {
    if (range.size() < 0 ||
        (range.size() > 0 && (range.begin < 0 || range.end > plane_columns))) {
      fail(
          "columns [" + std::to_string(range.begin) + ", " +
          std::to_string(range.end) + ") are not within planes of " +
          std::to_string(plane_columns));
    }
    columns += range.size();
  }
  return columns;
}

void check_row(const RowView& row, const KVView& view) {
  if (row.planes < 0 || row.planes >= static_cast<int>(view.planes.size())) {
    fail(
        "planes " + std::to_string(row.planes) + " of " +
        std::to_string(view.planes.size()));
  }
  const mx::array& keys = view.planes[static_cast<size_t>(row.planes)].keys;
  if (row.plane_row < 0 || row.plane_row >= keys.shape(0)) {
    fail(
        "plane row " + std::to_string(row.plane_row) + " of " +
        std::to_string(keys.shape(0)));
  }
  const int columns = check_ranges(row, keys.shape(2));
  const int end = row.first_position + row.num_tokens;
  const int seen =
      view.window > 0 ? std::min(end, row.num_tokens + view.window - 1) : end;
  if (row.num_tokens < 0 || row.first_position < 0 || columns > end ||
      columns < seen) {
    fail(
        "a row of " + std::to_string(row.num_tokens) +
        " tokens from position " + std::to_string(row.first_position) +
        " needs " + std::to_string(seen) + " to " + std::to_string(end) +
        " columns, got " + std::to_string(columns));
  }
}

void check_rows(const mx::array& queries, const KVView& view) {
  int tokens = 0;
  for (const RowView& row : view.rows) {
    check_row(row, view);
    if (row.first_token != tokens) {
      fail(
          "rows must lie back to back: token " +
          std::to_string(row.first_token) + " where " + std::to_string(tokens) +
          " was expected");
    }
    tokens += row.num_tokens;
  }
  if (tokens != queries.shape(0)) {
    fail(
        "the rows have " + std::to_string(tokens) + " tokens, the queries " +
        std::to_string(queries.shape(0)));
  }
}

} // namespace

void check_attention(
    const mx::array& queries,
    const KVView& view,
    const AttentionOptions& options) {
  check_queries(queries, view);
  const int kv_heads = check_heads(queries, view);
  for (const KVPlanes& planes : view.planes) {
    check_planes(planes, kv_heads, queries.shape(2));
  }
  check_rows(queries, view);
  if (options.sinks) {
    check_shape("sinks", *options.sinks, {queries.shape(1)});
  }
}

} // namespace sheave::kernels
