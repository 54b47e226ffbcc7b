#include "sheave/cache/row_kv_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <stdexcept>

#include "sheave/cache/cache_test_support.h"

namespace sheave {
namespace {

using testing::append_and_check;
using testing::keys_at;
using testing::values_at;

constexpr PlanesShape kShape = {
    .num_key_value_heads = testing::kHeads,
    .head_dim = testing::kHeadDim,
    .dtype = mx::float32};

/// Positions of row r are told apart by an offset in their keys.
constexpr int kRowMark = 10000;

/// Appends counts[r] tokens to row r and checks what each row shows.
void append_rows(
    RowKVCache& cache,
    const std::vector<int>& counts,
    int window) {
  StepLayout layout;
  std::vector<mx::array> keys;
  int token = 0;
  for (size_t r = 0; r < counts.size(); ++r) {
    const int first = cache.offset(static_cast<int>(r));
    layout.rows.push_back(
        {.first_token = token,
         .num_tokens = counts[r],
         .first_position = first});
    keys.push_back(keys_at(first + static_cast<int>(r) * kRowMark, counts[r]));
    token += counts[r];
  }
  const mx::array packed = mx::concatenate(keys, 0);
  const auto view = cache.append(packed, mx::negative(packed), layout);
  size_t seen = 0;
  for (size_t r = 0; r < counts.size(); ++r) {
    if (counts[r] == 0) {
      continue;
    }
    const kernels::RowView& row = view.rows.at(seen++);
    mx::array plane = view.planes[static_cast<size_t>(row.planes)].keys;
    plane.eval();
    const int end = row.first_position + counts[r];
    const int visible = row.ranges[0].size() + row.ranges[1].size();
    const int oldest =
        window == 0 ? 0 : std::max(0, row.first_position - window + 1);
    ASSERT_EQ(visible, end - oldest);
    int position = oldest + static_cast<int>(r) * kRowMark;
    for (const auto& range : row.ranges) {
      for (int column = range.begin; column < range.end; ++column) {
        const float expected = static_cast<float>(position++ * 8);
        ASSERT_EQ(plane.data<float>()[column * testing::kHeadDim], expected);
      }
    }
  }
}

TEST(RowKVCache, ShowsEveryPositionThroughGrowth) {
  RowKVCache cache(kShape, 1, 0);
  for (const int count : {1, 7, 256, 1, 1, 300, 1}) {
    append_and_check(cache, count, 0);
  }
  EXPECT_EQ(cache.nbytes(), cache.projected_bytes(567));
}

TEST(RowKVCache, KeepsTheLastWindowTokensAfterWrap) {
  for (const int window : {1, 4, 255, 256, 257, 300}) {
    RowKVCache cache(kShape, 1, window);
    for (int token = 0; token < 700; ++token) {
      append_and_check(cache, 1, window);
    }
    EXPECT_EQ(cache.nbytes(), cache.projected_bytes(700)) << window;
  }
}

TEST(RowKVCache, HoldsForRandomStepsOfSeveralRows) {
  for (unsigned seed = 0; seed < 30; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    const int window =
        random() % 3 == 0 ? 0 : 1 + static_cast<int>(random() % 400);
    const int rows = 1 + static_cast<int>(random() % 4);
    RowKVCache cache(kShape, rows, window);
    int largest = 1;
    for (int step = 0; step < 12; ++step) {
      std::vector<int> counts;
      for (int row = 0; row < rows; ++row) {
        const bool block = random() % 2 == 0;
        counts.push_back(static_cast<int>(random() % (block ? 400 : 3)));
        largest = std::max(largest, counts.back());
      }
      if (std::count(counts.begin(), counts.end(), 0) == rows) {
        counts[0] = 1;
      }
      append_rows(cache, counts, window);
    }
    if (window > 0) {
      const size_t columns =
          cache.nbytes() /
          (size_t{2} * testing::kHeads * testing::kHeadDim * 4) /
          static_cast<size_t>(rows);
      EXPECT_LE(
          columns,
          static_cast<size_t>(window + largest + RowRing::kStep));
    }
  }
}

TEST(RowKVCache, TrimsUntilItWrapsAndRefusesAfter) {
  RowKVCache cache(kShape, 1, 8);
  append_and_check(cache, 5, 8);
  EXPECT_EQ(cache.trim(2), 2);
  append_and_check(cache, 250, 8);
  EXPECT_TRUE(cache.trimmable());
  EXPECT_EQ(cache.trim(1), 1);
  append_and_check(cache, 100, 8);
  EXPECT_FALSE(cache.trimmable());
  EXPECT_THROW(cache.trim(1), std::invalid_argument);
  append_and_check(cache, 1, 8);
}

TEST(RowKVCache, RefusesWhatItDoesNotExpectAndStaysAsItWas) {
  RowKVCache cache(kShape, 2, 0);
  append_rows(cache, {3, 1}, 0);
  const auto append = [&](std::vector<StepRow> rows, int tokens) {
    cache.append(
        keys_at(0, tokens),
        values_at(0, tokens),
        StepLayout{std::move(rows)});
  };
  EXPECT_THROW(append({{0, 1, 3}}, 1), std::invalid_argument);
  EXPECT_THROW(append({{0, 1, 3}, {1, 1, 2}}, 2), std::invalid_argument);
  EXPECT_THROW(append({{0, 1, 3}, {0, 1, 1}}, 2), std::invalid_argument);
  EXPECT_THROW(append({{0, 1, 3}, {1, 1, 1}}, 3), std::invalid_argument);
  EXPECT_THROW(cache.offset(2), std::invalid_argument);
  EXPECT_THROW(cache.trim(-1), std::invalid_argument);
  EXPECT_THROW(RowKVCache(kShape, 0, 0), std::invalid_argument);
  EXPECT_THROW(RowKVCache(kShape, 1, -1), std::invalid_argument);
  append_rows(cache, {1, 2}, 0);
}

TEST(RowKVCache, SaysWhatItIs) {
  EXPECT_EQ(RowKVCache(kShape, 1, 0).signature(), "full plain float32");
  EXPECT_EQ(
      RowKVCache(kShape, 1, 512).signature(),
      "rotating window=512 plain float32");
}

} // namespace
} // namespace sheave
