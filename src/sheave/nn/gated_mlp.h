// GatedMLP: down(act(gate(x)) * up(x)), the feed-forward of all dense
// families here.
#pragma once

#include <mlx/array.h>

#include "sheave/nn/linear.h"

namespace sheave {

/// What the gate passes through.
enum class GateActivation { kSilu, kGeluTanh };

/// One feed-forward layer over packed tokens.
class GatedMLP {
 public:
  GatedMLP(
      Linear gate_proj,
      Linear up_proj,
      Linear down_proj,
      GateActivation activation);

  /// x: [T, hidden_size] float32. Returns [T, hidden_size].
  mx::array operator()(const mx::array& x) const;

 private:
  Linear gate_proj_;
  Linear up_proj_;
  Linear down_proj_;
  GateActivation activation_;
};

} // namespace sheave
