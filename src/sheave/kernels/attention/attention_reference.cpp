#include "sheave/kernels/attention/attention_reference.h"

#include <mlx/ops.h>

#include <limits>
#include <optional>
#include <utility>
#include <vector>

namespace sheave::kernels {
namespace {

/// One row's columns in temporal order, [Hkv, S, n].
mx::array temporal_columns(const mx::array& plane, const RowView& row) {
  std::vector<mx::array> parts;
  parts.reserve(row.ranges.size());
  for (const ColumnRange& range : row.ranges) {
    parts.push_back(mx::slice(
        plane,
        {row.plane_row, 0, range.begin, 0},
        {row.plane_row + 1, plane.shape(1), range.end, plane.shape(3)}));
  }
  return mx::squeeze(mx::concatenate(std::move(parts), 2), 0);
}

/// The same as float32 [Hkv, S, D], dequantized where there are scales.
mx::array float_columns(
    const KVPlanes& planes,
    const mx::array& plane,
    const std::optional<mx::array>& scales,
    const std::optional<mx::array>& biases,
    const RowView& row) {
  const mx::array columns = temporal_columns(plane, row);
  if (planes.bits == 0) {
    return mx::astype(columns, mx::float32);
  }
  return mx::dequantize(
      columns,
      mx::astype(temporal_columns(*scales, row), mx::float32),
      mx::astype(temporal_columns(*biases, row), mx::float32),
      planes.group_size,
      planes.bits);
}

/// Whether query i sees column j, [L, S].
mx::array visible(const RowView& row, int columns, int window) {
  const int end = row.first_position + row.num_tokens;
  const mx::array queries =
      mx::expand_dims(mx::arange(row.first_position, end), 1);
  const mx::array keys = mx::expand_dims(mx::arange(end - columns, end), 0);
  const mx::array causal = mx::less_equal(keys, queries);
  return window == 0 ? causal
                     : mx::logical_and(
                           causal,
                           mx::greater(keys, queries - mx::array(window)));
}

mx::array attend_row(
    const mx::array& queries,
    const KVView& view,
    const RowView& row,
    const AttentionOptions& options) {
  const int heads = queries.shape(1);
  const int dims = queries.shape(2);
  const KVPlanes& planes = view.planes[static_cast<size_t>(row.planes)];
  const int kv_heads = planes.keys.shape(1);
  const mx::array keys = float_columns(
      planes,
      planes.keys,
      planes.key_scales,
      planes.key_biases,
      row);
  const mx::array values = float_columns(
      planes,
      planes.values,
      planes.value_scales,
      planes.value_biases,
      row);
  const int columns = keys.shape(1);
  // [Hkv, G, L, D] against [Hkv, 1, S, D]
  const mx::array grouped = mx::transpose(
      mx::reshape(
          mx::slice(
              mx::astype(queries, mx::float32),
              {row.first_token, 0, 0},
              {row.first_token + row.num_tokens, heads, dims}),
          {row.num_tokens, kv_heads, heads / kv_heads, dims}),
      {1, 2, 0, 3});
  mx::array scores = mx::matmul(
      grouped * mx::array(options.scale),
      mx::expand_dims(mx::transpose(keys, {0, 2, 1}), 1));
  if (options.logit_softcap > 0) {
    const mx::array cap(options.logit_softcap);
    scores = cap * mx::tanh(scores / cap);
  }
  scores = mx::where(
      visible(row, columns, view.window),
      scores,
      mx::array(-std::numeric_limits<float>::infinity()));
  if (options.sinks) { // one more column, of which the value is left out
    const mx::array sink = mx::broadcast_to(
        mx::reshape(*options.sinks, {kv_heads, heads / kv_heads, 1, 1}),
        {kv_heads, heads / kv_heads, row.num_tokens, 1});
    scores = mx::concatenate({scores, sink}, 3);
  }
  const mx::array weights = mx::slice(
      mx::softmax(scores, -1, true),
      {0, 0, 0, 0},
      {kv_heads, heads / kv_heads, row.num_tokens, columns});
  const mx::array attended =
      mx::matmul(weights, mx::expand_dims(values, 1)); // [Hkv, G, L, D]
  return mx::reshape(
      mx::transpose(attended, {2, 0, 1, 3}),
      {row.num_tokens, heads * dims});
}

} // namespace

mx::array attention_reference(
    const mx::array& queries,
    const KVView& view,
    const AttentionOptions& options) {
  std::vector<mx::array> rows;
  for (const RowView& row : view.rows) {
    if (row.num_tokens > 0) {
      rows.push_back(attend_row(queries, view, row, options));
    }
  }
  if (rows.empty()) {
    return mx::zeros({0, queries.shape(1) * queries.shape(2)});
  }
  return rows.size() == 1 ? rows[0] : mx::concatenate(std::move(rows), 0);
}

} // namespace sheave::kernels
