// StepLayout: which row each packed token of a forward step belongs to, and at
// which position. Plain integers; the same value serves a single chat, a
// cohort's prefill, and decoding rows mixed with a prefill chunk.
#pragma once

#include <cstdint>
#include <vector>

namespace sheave {

/// One row's share of a step: `num_tokens` consecutive packed tokens from
/// `first_token` on, the first of them at absolute position `first_position`.
struct StepRow {
  int first_token = 0;
  int num_tokens = 0;
  int first_position = 0;
};

/// A step's rows in the order of the batch; their tokens lie back to back.
struct StepLayout {
  std::vector<StepRow> rows;

  /// The layout of one row alone: tokens at positions [first_position,
  /// first_position + num_tokens).
  static StepLayout single(int first_position, int num_tokens);

  /// All tokens of the step.
  int num_tokens() const;

  /// The position of each packed token, [num_tokens].
  std::vector<int32_t> positions() const;
};

} // namespace sheave
