// Step: the description that travels beside a forward step's activations.
#pragma once

#include <mlx/array.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "sheave/cache/step_layout.h"
#include "sheave/nn/rope.h"

namespace sheave {

namespace mx = mlx::core;

/// Rows of the step, and what is computed once for all its layers. Positions
/// are read once, so that every layer sees the same ones whatever the caches
/// have advanced to. For one thread.
class Step {
 public:
  explicit Step(StepLayout layout);

  const StepLayout& layout() const {
    return layout_;
  }

  /// The angles of the step's tokens, [T, 2 * P]: computed at the first call
  /// for these frequencies.
  const mx::array& rope_table(const Rope& rope) const;

 private:
  StepLayout layout_;
  mx::array positions_; // [T] int32
  mutable std::vector<std::pair<std::uintptr_t, mx::array>> tables_;
};

} // namespace sheave
