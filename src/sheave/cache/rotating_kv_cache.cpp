#include "sheave/cache/rotating_kv_cache.h"

#include <algorithm>
#include <stdexcept>

#include "sheave/cache/append_check.h"

namespace sheave {

RotatingKVCache::RotatingKVCache(const PlanesShape& shape, int max_size)
    : shape_(shape),
      planes_(shape, 1),
      state_(RotatingState::empty(max_size, 1)) {}

kernels::KVView RotatingKVCache::append(
    const mx::array& keys,
    const mx::array& values,
    const StepLayout& layout) {
  check_append(
      "rotating_kv_cache",
      shape_,
      state_.offsets[0],
      layout,
      keys,
      values);
  const int tokens = layout.num_tokens();
  const int first_position = state_.offsets[0];
  if (tokens == 1) {
    append_token(as_block(keys), as_block(values));
  } else {
    append_block(as_block(keys), as_block(values));
  }
  return {
      .planes = {{.keys = planes_.keys(), .values = planes_.values()}},
      .rows =
          {{.plane_row = 0,
            .first_token = 0,
            .num_tokens = tokens,
            .first_position = first_position,
            .ranges = state_.temporal_ranges(
                state_.left_pad[0],
                state_.active_length())}},
      .window = state_.max_size};
}

void RotatingKVCache::append_token(
    const mx::array& keys,
    const mx::array& values) {
  const int columns = state_.grown_columns(planes_.columns());
  if (columns > planes_.columns()) {
    planes_.grow(columns - planes_.columns());
  }
  const auto slot = state_.commit_token(planes_.columns());
  if (slot.surplus > 0) {
    const int end = planes_.columns();
    planes_.keep({{{slot.surplus, end}, {end, end}}});
  }
  planes_.write(slot.column, keys, values);
}

void RotatingKVCache::append_block(
    const mx::array& keys,
    const mx::array& values) {
  const int history = state_.active_length();
  const int dropped = std::max(0, history - state_.max_size + 1);
  planes_.keep(state_.temporal_ranges(dropped, history));
  planes_.concat(keys, values);
  state_.commit_block(keys.shape(2));
}

int RotatingKVCache::offset(int row) const {
  if (row != 0) {
    throw std::invalid_argument(
        "[rotating_kv_cache] expected row 0, got " + std::to_string(row));
  }
  return state_.offsets[0];
}

size_t RotatingKVCache::projected_bytes(int tokens) const {
  return planes_bytes(shape_, std::min(tokens, state_.max_size));
}

std::string RotatingKVCache::signature() const {
  return "rotating window=" + std::to_string(state_.max_size) + " plain " +
         dtype_name(shape_.dtype);
}

std::unique_ptr<Cache> make_rotating_kv_cache(
    const PlanesShape& shape,
    int max_size) {
  return std::make_unique<RotatingKVCache>(shape, max_size);
}

} // namespace sheave
