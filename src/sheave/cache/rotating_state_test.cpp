#include "sheave/cache/rotating_state.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <vector>

namespace sheave {
namespace {

/// The physical columns that a state shows, oldest first.
std::vector<int> temporal_columns(const RotatingState& state) {
  std::vector<int> columns;
  for (const auto& range : state.temporal_ranges(0, state.active_length())) {
    for (int c = range.begin; c < range.end; ++c) {
      columns.push_back(c);
    }
  }
  return columns;
}

TEST(RotatingState, RefusesAWindowOfNothing) {
  EXPECT_THROW(RotatingState::empty(0, 1), std::invalid_argument);
  EXPECT_THROW(RotatingState::empty(4, -1), std::invalid_argument);
}

TEST(RotatingState, WritesTokensRoundTheRing) {
  RotatingState state = RotatingState::empty(4, 1);
  std::vector<int> columns;
  for (int token = 0; token < 6; ++token) {
    const auto slot = state.commit_token(4);
    EXPECT_EQ(slot.surplus, 0);
    columns.push_back(slot.column);
  }
  EXPECT_EQ(columns, (std::vector<int>{0, 1, 2, 3, 0, 1}));
  EXPECT_TRUE(state.rotated);
  EXPECT_EQ(state.offsets[0], 6);
  EXPECT_EQ(temporal_columns(state), (std::vector<int>{2, 3, 0, 1}));
}

TEST(RotatingState, GrowsInStepsUpToTheWindow) {
  RotatingState state = RotatingState::empty(300, 1);
  EXPECT_EQ(state.grown_columns(0), 256);
  state.commit_block(256);
  EXPECT_EQ(state.grown_columns(256), 300);
  state.commit_token(300);
  EXPECT_EQ(state.grown_columns(300), 300);
}

TEST(RotatingState, KeepsWindowMinusOneColumnsBeforeABlock) {
  RotatingState state = RotatingState::empty(4, 1);
  EXPECT_EQ(state.commit_block(3), 0);
  EXPECT_EQ(state.active_length(), 3);
  EXPECT_EQ(state.commit_block(2), 0);
  EXPECT_EQ(state.active_length(), 5);
  EXPECT_EQ(state.commit_block(6), 2);
  EXPECT_EQ(state.active_length(), 9);
  EXPECT_EQ(state.offsets[0], 11);
}

TEST(RotatingState, CutsTheSurplusBeforeATokenThatFollowsABlock) {
  RotatingState state = RotatingState::empty(4, 1);
  state.commit_block(7);
  const auto slot = state.commit_token(7);
  EXPECT_EQ(slot.surplus, 3);
  EXPECT_EQ(slot.column, 0);
  EXPECT_EQ(temporal_columns(state), (std::vector<int>{1, 2, 3, 0}));
}

TEST(RotatingState, TrimsOnlyWhileNothingIsLost) {
  RotatingState state = RotatingState::empty(8, 1);
  state.commit_block(5);
  EXPECT_TRUE(state.trimmable());
  EXPECT_EQ(state.trim(2), 2);
  EXPECT_EQ(state.offsets[0], 3);
  EXPECT_EQ(state.trim(9), 3);
  EXPECT_EQ(state.offsets[0], 0);
  state.commit_block(8);
  EXPECT_FALSE(state.trimmable());
  EXPECT_THROW(state.trim(1), std::invalid_argument);
  EXPECT_THROW(RotatingState::empty(8, 1).trim(-1), std::invalid_argument);
}

TEST(RotatingState, PaddingNeverRunsBelowZero) {
  RotatingState state = RotatingState::empty(2, 2);
  state.left_pad = {1, 0};
  for (int token = 0; token < 5; ++token) {
    state.commit_token(2);
  }
  EXPECT_EQ(state.left_pad, (std::vector<int>{0, 0}));
}

TEST(RotatingState, RangesOfAPartStayInOrder) {
  RotatingState state = RotatingState::empty(4, 1);
  for (int token = 0; token < 6; ++token) {
    state.commit_token(4);
  }
  const auto ranges = state.temporal_ranges(1, 4);
  EXPECT_EQ(ranges[0], (kernels::ColumnRange{3, 4}));
  EXPECT_EQ(ranges[1], (kernels::ColumnRange{0, 2}));
  EXPECT_EQ(state.temporal_ranges(3, 4)[0].size(), 0);
  EXPECT_EQ(state.temporal_ranges(3, 4)[1], (kernels::ColumnRange{1, 2}));
  EXPECT_THROW(state.temporal_ranges(0, 5), std::invalid_argument);
}

TEST(RotatingState, ACopyIsASnapshot) {
  RotatingState state = RotatingState::empty(4, 1);
  state.commit_block(3);
  const RotatingState snapshot = state;
  state.commit_token(4);
  EXPECT_NE(state, snapshot);
  state = snapshot;
  EXPECT_EQ(state.offsets[0], 3);
}

} // namespace
} // namespace sheave
