// What the tests of all cache layouts share: recognizable keys and values, and
// the ground truth that every layout must show.
#pragma once

#include <gtest/gtest.h>
#include <mlx/ops.h>
#include <mlx/transforms.h>

#include <algorithm>
#include <vector>

#include "sheave/cache/cache.h"

namespace sheave::testing {

constexpr int kHeads = 2;
constexpr int kHeadDim = 4;

/// Keys of positions [first, first + count): [count, kHeads, kHeadDim], every
/// element tells position, head and dim.
inline mx::array keys_at(int first, int count) {
  std::vector<float> data;
  for (int t = 0; t < count; ++t) {
    for (int h = 0; h < kHeads; ++h) {
      for (int d = 0; d < kHeadDim; ++d) {
        data.push_back(static_cast<float>((first + t) * 8 + h * 4 + d));
      }
    }
  }
  return mx::array(data.begin(), {count, kHeads, kHeadDim});
}

inline mx::array values_at(int first, int count) {
  return mx::negative(keys_at(first, count));
}

/// Appends `count` tokens as one block and checks that the view shows, in
/// temporal order and byte for byte, the newest positions, at least those
/// within the window of the block's first token.
inline void append_and_check(Cache& cache, int count, int window) {
  const int first = cache.offset(0);
  const kernels::KVView view = cache.append(
      keys_at(first, count),
      values_at(first, count),
      StepLayout::single(first, count));
  ASSERT_EQ(view.rows.size(), 1U);
  const kernels::RowView& row = view.rows[0];
  EXPECT_EQ(row.num_tokens, count);
  EXPECT_EQ(row.first_position, first);
  mx::array keys = mx::astype(view.planes[0].keys, mx::float32);
  mx::array values = mx::astype(view.planes[0].values, mx::float32);
  keys = mx::contiguous(keys);
  values = mx::contiguous(values);
  mx::eval(keys, values);
  std::vector<int> columns;
  for (const auto& range : row.ranges) {
    for (int c = range.begin; c < range.end; ++c) {
      columns.push_back(c);
    }
  }
  const int end = first + count;
  const int visible = static_cast<int>(columns.size());
  const int needed = window == 0 ? end : std::min(end, window - 1 + count);
  ASSERT_GE(visible, needed);
  ASSERT_LE(visible, end);
  const int width = keys.shape(2);
  for (int i = 0; i < visible; ++i) {
    const int position = end - visible + i;
    for (int h = 0; h < kHeads; ++h) {
      for (int d = 0; d < kHeadDim; ++d) {
        const int at =
            (h * width + columns[static_cast<size_t>(i)]) * kHeadDim + d;
        const auto expected = static_cast<float>(position * 8 + h * 4 + d);
        ASSERT_EQ(keys.data<float>()[at], expected) << "position " << position;
        ASSERT_EQ(values.data<float>()[at], -expected);
      }
    }
  }
}

} // namespace sheave::testing
