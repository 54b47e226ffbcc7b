// ColumnRange: a half-open range of physical columns of a cache's planes. No
// MLX here, so that code which only decides in integers can use it.
#pragma once

namespace sheave::kernels {

/// Physical columns [begin, end).
struct ColumnRange {
  int begin = 0;
  int end = 0;

  bool operator==(const ColumnRange&) const = default;

  int size() const {
    return end - begin;
  }
};

} // namespace sheave::kernels
