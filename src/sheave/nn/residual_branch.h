// BranchNorms: what surrounds attention and feed-forward in a decoder layer.
#pragma once

#include <optional>

#include "sheave/nn/rms_norm.h"

namespace sheave {

/// A residual branch is x + after(f(before(x))); families differ in whether
/// there is an `after`.
struct BranchNorms {
  RMSNorm before;
  std::optional<RMSNorm> after;
};

} // namespace sheave
