#include "sheave/cache/rotating_state.h"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace sheave {

RotatingState RotatingState::empty(int max_size, int rows) {
  if (max_size <= 0 || rows < 0) {
    throw std::invalid_argument(
        "[rotating_state] expected max_size > 0 and rows >= 0, got max_size " +
        std::to_string(max_size) + " and rows " + std::to_string(rows));
  }
  RotatingState state;
  state.max_size = max_size;
  state.offsets.assign(static_cast<size_t>(rows), 0);
  state.left_pad.assign(static_cast<size_t>(rows), 0);
  return state;
}

bool RotatingState::trimmable() const {
  if (total_offset >= max_size) {
    return false;
  }
  for (size_t r = 0; r < offsets.size(); ++r) {
    if (offsets[r] > active_length() - left_pad[r]) {
      return false;
    }
  }
  return true;
}

int RotatingState::grown_columns(int buffer_columns) const {
  if (total_offset < buffer_columns || buffer_columns >= max_size) {
    return buffer_columns;
  }
  return buffer_columns + std::min(kStep, max_size - total_offset);
}

RotatingState::TokenSlot RotatingState::commit_token(int buffer_columns) {
  const int surplus = std::max(0, buffer_columns - max_size);
  int lost = surplus;
  if (surplus > 0) {
    ring_index = max_size;
  }
  if (ring_index == max_size) {
    rotated = true;
    ring_index = 0;
  }
  if (rotated) {
    ++lost; // the write goes over the oldest column
  }
  for (size_t r = 0; r < offsets.size(); ++r) {
    left_pad[r] = std::max(0, left_pad[r] - lost);
    ++offsets[r];
  }
  ++total_offset;
  return {.surplus = surplus, .column = ring_index++};
}

int RotatingState::commit_block(int num_tokens) {
  const int history = active_length();
  const int dropped = std::max(0, history - max_size + 1);
  for (size_t r = 0; r < offsets.size(); ++r) {
    left_pad[r] = std::max(0, left_pad[r] - dropped);
    offsets[r] += num_tokens;
  }
  total_offset += num_tokens;
  ring_index = history - dropped + num_tokens;
  rotated = false;
  return dropped;
}

int RotatingState::trim(int n) {
  if (n < 0 || !trimmable()) {
    throw std::invalid_argument(
        "[rotating_state] cannot trim " + std::to_string(n) +
        " columns: total_offset " + std::to_string(total_offset) +
        " of max_size " + std::to_string(max_size));
  }
  n = std::min(n, total_offset);
  total_offset -= n;
  ring_index -= n;
  for (int& offset : offsets) {
    offset -= n;
  }
  return n;
}

std::array<kernels::ColumnRange, 2> RotatingState::temporal_ranges(
    int from,
    int to) const {
  if (from < 0 || from > to || to > active_length()) {
    throw std::invalid_argument(
        "[rotating_state] columns [" + std::to_string(from) + ", " +
        std::to_string(to) + ") are not within " +
        std::to_string(active_length()));
  }
  if (!rotated) {
    return {{{from, to}, {to, to}}};
  }
  // Temporal column c lies at (ring_index + c) mod max_size.
  const int older = max_size - ring_index; // columns up to the buffer's end
  const int split = std::clamp(older, from, to);
  return {
      {{ring_index + from, ring_index + split},
       {std::max(0, split - older), std::max(0, to - older)}}};
}

} // namespace sheave
