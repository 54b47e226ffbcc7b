// Step: the description that travels beside a forward step's activations.
#pragma once

#include <mlx/array.h>

#include "sheave/cache/step_layout.h"

namespace sheave {

namespace mx = mlx::core;

/// Rows of the step, and the position of each packed token as an array for
/// RoPE. Read once per step, so that every layer sees the same positions
/// whatever the caches have advanced to.
struct Step {
  explicit Step(StepLayout step_layout);

  StepLayout layout;
  mx::array positions; // [T] int32
};

} // namespace sheave
