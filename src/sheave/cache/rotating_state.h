// RotatingState: where the tokens of a sliding-window cache lie, as plain
// integers. It decides; RotatingKVCache moves the bytes accordingly.
//
// A ring of max_size = 4 after six one-token writes (positions 0..5):
//
//     column      0  1  2  3
//     position    4  5  2  3      rotated, ring_index = 2: the oldest column
//                       ^         is the next to be overwritten
//
// Source: mlx-lm models/cache.py, BatchRotatingKVCache (0.32.2); ours keeps
// positions on the host and never lets left_pad run below zero.
#pragma once

#include <array>
#include <vector>

#include "sheave/kernels/column_range.h"

namespace sheave {

/// Positions of all rows of one ring. A copy is a snapshot.
struct RotatingState {
  /// Columns are allocated in steps of this many, up to the window.
  static constexpr int kStep = 256;

  int max_size = 0;         // the window W
  std::vector<int> offsets; // per row: absolute position of its next token
  std::vector<int>
      left_pad;         // per row: columns at the front that aren't its own
  int ring_index = 0;   // physical column of the next write
  int total_offset = 0; // columns written so far, the same for every row
  bool rotated = false; // the oldest column is at ring_index

  bool operator==(const RotatingState&) const = default;

  /// A state of `rows` empty rows. Throws std::invalid_argument unless
  /// max_size > 0 and rows >= 0.
  static RotatingState empty(int max_size, int rows);

  int batch_size() const {
    return static_cast<int>(offsets.size());
  }

  /// Columns that hold tokens (or padding).
  int active_length() const {
    return rotated ? max_size : ring_index;
  }

  /// Nothing has been lost: no write has wrapped, and every row still holds
  /// its position 0.
  bool trimmable() const;

  /// Makes room for one more column and returns where it goes: the physical
  /// column after dropping `surplus` columns from the front of the buffer.
  struct TokenSlot {
    int surplus;
    int column;
  };

  /// Commits a write of one column per row, in place. `buffer_columns` is the
  /// buffer's width; when it is less than needed the caller grows it first
  /// (see grown_columns).
  TokenSlot commit_token(int buffer_columns);

  /// The width the buffer must have before commit_token: unchanged, or grown
  /// by up to kStep columns but not past max_size.
  int grown_columns(int buffer_columns) const;

  /// Commits a block of `num_tokens` columns that the caller appends to the
  /// history in temporal order. Returns how many of the history's oldest
  /// columns are dropped: the block keeps max_size - 1 of them, so that its
  /// first query still sees a whole window.
  int commit_block(int num_tokens);

  /// Forgets the newest `n` columns of all rows, at most as many as there
  /// are; returns how many. Throws std::invalid_argument for n < 0 or while
  /// not trimmable.
  int trim(int n);

  /// The physical ranges that show the temporal columns [from, to).
  /// Throws std::invalid_argument unless 0 <= from <= to <= active_length().
  std::array<kernels::ColumnRange, 2> temporal_ranges(int from, int to) const;
};

} // namespace sheave
