#include "sheave/cache/plain_planes.h"

#include <mlx/ops.h>

#include <sstream>
#include <stdexcept>
#include <utility>
#include <vector>

namespace sheave {
namespace {

mx::array empty_plane(const PlanesShape& shape, int rows) {
  return mx::zeros(
      {rows, shape.num_key_value_heads, 0, shape.head_dim},
      shape.dtype);
}

void check_block(const mx::array& plane, const mx::array& block) {
  const bool fits = block.ndim() == 4 && block.shape(0) == plane.shape(0) &&
                    block.shape(1) == plane.shape(1) &&
                    block.shape(3) == plane.shape(3);
  if (!fits) {
    std::ostringstream message;
    message << "[plain_planes] expected a block like " << plane.shape()
            << " but for its columns, got " << block.shape();
    throw std::invalid_argument(message.str());
  }
}

mx::array columns_of(const mx::array& plane, kernels::ColumnRange range) {
  const auto& shape = plane.shape();
  return mx::slice(
      plane,
      {0, 0, range.begin, 0},
      {shape[0], shape[1], range.end, shape[3]});
}

mx::array keep_columns(
    const mx::array& plane,
    const std::array<kernels::ColumnRange, 2>& ranges) {
  std::vector<mx::array> parts;
  for (const kernels::ColumnRange& range : ranges) {
    if (range.size() > 0) {
      parts.push_back(columns_of(plane, range));
    }
  }
  if (parts.empty()) {
    return columns_of(plane, {0, 0});
  }
  return parts.size() == 1 ? parts[0] : mx::concatenate(std::move(parts), 2);
}

/// Replaces `plane` by itself with `block` at `column`. The old handle is gone
/// before evaluation, so that MLX can write in place.
void write_columns(mx::array& plane, int column, const mx::array& block) {
  const auto& shape = plane.shape();
  plane = mx::slice_update(
      plane,
      mx::astype(block, plane.dtype()),
      mx::Shape{0, 0, column, 0},
      mx::Shape{shape[0], shape[1], column + block.shape(2), shape[3]});
}

} // namespace

PlainPlanes::PlainPlanes(const PlanesShape& shape, int rows)
    : keys_(empty_plane(shape, rows)), values_(empty_plane(shape, rows)) {}

void PlainPlanes::grow(int columns) {
  for (mx::array* plane : {&keys_, &values_}) {
    mx::Shape shape = plane->shape();
    shape[2] = columns;
    const mx::array zeros = mx::zeros(shape, plane->dtype());
    *plane = plane->shape(2) == 0 ? zeros : mx::concatenate({*plane, zeros}, 2);
  }
}

void PlainPlanes::write(
    int column,
    const mx::array& keys,
    const mx::array& values) {
  check_block(keys_, keys);
  check_block(values_, values);
  if (column < 0 || column + keys.shape(2) > columns()) {
    throw std::invalid_argument(
        "[plain_planes] a block of " + std::to_string(keys.shape(2)) +
        " columns at column " + std::to_string(column) +
        " doesn't fit planes of " + std::to_string(columns()));
  }
  write_columns(keys_, column, keys);
  write_columns(values_, column, values);
}

void PlainPlanes::concat(const mx::array& keys, const mx::array& values) {
  check_block(keys_, keys);
  check_block(values_, values);
  keys_ = mx::concatenate({keys_, mx::astype(keys, keys_.dtype())}, 2);
  values_ = mx::concatenate({values_, mx::astype(values, values_.dtype())}, 2);
}

void PlainPlanes::keep(const std::array<kernels::ColumnRange, 2>& ranges) {
  if (ranges[0].begin == 0 && ranges[0].size() == columns()) {
    return;
  }
  keys_ = keep_columns(keys_, ranges);
  values_ = keep_columns(values_, ranges);
}

} // namespace sheave
