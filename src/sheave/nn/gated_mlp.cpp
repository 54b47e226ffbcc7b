#include "sheave/nn/gated_mlp.h"

#include <utility>

#include "sheave/kernels/activations/activations.h"

namespace sheave {

GatedMLP::GatedMLP(GatedMLPParts parts) : parts_(std::move(parts)) {}

mx::array GatedMLP::operator()(const mx::array& x) const {
  const auto& after = parts_.norms.after;
  return parts_.down_proj(
      gated(x),
      {.output_norm = after ? &*after : nullptr, .residual = &x});
}

// act(gate(before(x))) * up(before(x)).
mx::array GatedMLP::gated(const mx::array& x) const {
  const Linear& gate_proj = parts_.gate_proj;
  const Linear& up_proj = parts_.up_proj;
  const bool fused = gate_proj.packed() != nullptr &&
                     up_proj.packed() != nullptr && !gate_proj.bias() &&
                     !up_proj.bias();
  if (fused) {
    return kernels::quantized_gated(
        x,
        *gate_proj.packed(),
        *up_proj.packed(),
        parts_.gate,
        parts_.norms.before.weight());
  }
  const mx::array normed = parts_.norms.before(x);
  const mx::array gate = gate_proj(normed);
  const mx::array up = up_proj(normed);
  return kernels::gated(parts_.gate, gate, up);
}

} // namespace sheave
