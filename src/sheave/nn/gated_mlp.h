// GatedMLP: down(act(gate(x)) * up(x)), the feed-forward of all dense
// families here, as a residual branch.
#pragma once

#include <mlx/array.h>

#include "sheave/kernels/quantized_linear/quantized_linear.h"
#include "sheave/nn/linear.h"
#include "sheave/nn/residual_branch.h"

namespace sheave {

/// The parts of one feed-forward layer.
struct GatedMLPParts {
  BranchNorms norms;
  Linear gate_proj;
  Linear up_proj;
  Linear down_proj;
  kernels::GateKind gate;
};

/// One feed-forward layer over packed tokens.
class GatedMLP {
 public:
  explicit GatedMLP(GatedMLPParts parts);

  /// x: [T, hidden_size] float32. Returns x plus the branch, [T, hidden_size].
  mx::array operator()(const mx::array& x) const;

  const GatedMLPParts& parts() const {
    return parts_;
  }

 private:
  mx::array gated(const mx::array& x) const;

  GatedMLPParts parts_;
};

} // namespace sheave
