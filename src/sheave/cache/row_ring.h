// RowRing: where the tokens of one row of a RowKVCache lie, as plain integers.
//
// A ring of 6 columns after ten tokens, window 4:
//
//     column      0  1  2  3  4  5
//     position    6  7  8  9  4  5      the next token, 10, goes to column 4
//                                       and sees 7, 8, 9 and itself
#pragma once

#include <array>

#include "sheave/kernels/column_range.h"

namespace sheave {

/// A copy is a snapshot.
struct RowRing {
  /// Columns are allocated in steps of this many.
  static constexpr int kStep = 256;

  int window = 0;  // positions that a token sees; 0 for all
  int columns = 0; // of the buffer
  int offset = 0;  // position of the next token
  int oldest = 0;  // the first position that is still stored

  bool operator==(const RowRing&) const = default;

  /// The first position that a token at `position` sees.
  int first_seen(int position) const;

  /// Columns that the buffer must have before `tokens` more are stored.
  int columns_for(int tokens) const;

  /// Where the positions [begin, end) lie, in temporal order. They must be
  /// stored or about to be, and fit the buffer.
  std::array<kernels::ColumnRange, 2> ranges(int begin, int end) const;

  /// Stores `tokens` more.
  void advance(int tokens);

  /// Whether nothing that a token saw has been overwritten.
  bool complete() const {
    return oldest == 0;
  }
};

} // namespace sheave
