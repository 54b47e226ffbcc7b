#include "sheave/nn/gated_mlp.h"

#include <utility>

#include "sheave/kernels/activations/activations.h"

namespace sheave {

GatedMLP::GatedMLP(
    Linear gate_proj,
    Linear up_proj,
    Linear down_proj,
    GateActivation activation)
    : gate_proj_(std::move(gate_proj)),
      up_proj_(std::move(up_proj)),
      down_proj_(std::move(down_proj)),
      activation_(activation) {}

mx::array GatedMLP::operator()(const mx::array& x) const {
  const mx::array gate = gate_proj_(x);
  const mx::array up = up_proj_(x);
  return down_proj_(
      activation_ == GateActivation::kSilu ? kernels::swiglu(gate, up)
                                           : kernels::geglu_tanh(gate, up));
}

} // namespace sheave
