#include <mlx/ops.h>

#include <array>
#include <utility>
#include <vector>

#include "sheave/kernels/quantized_linear/optional_input.h"
#include "sheave/kernels/quantized_linear/product_calls.h"
#include "sheave/kernels/quantized_linear/quantized_checks.h"
#include "sheave/kernels/quantized_linear/quantized_linear.h"
#include "sheave/kernels/quantized_linear/quantized_reference.h"
#include "sheave/kernels/runtime.h"

namespace sheave::kernels {
namespace {

/// Inputs: x, and the norm weight if it is an input.
class QuantizedGatedPrimitive : public CpuFloatPrimitive {
 public:
  QuantizedGatedPrimitive(
      const PackedWeight& gate,
      const PackedWeight& up,
      GateKind kind,
      const std::optional<NormWeight>& norm,
      std::vector<mx::array>& inputs)
      : weights_{gate, up},
        kind_(kind),
        norm_(weight_of(norm), inputs),
        eps_(eps_of(norm)) {}

  DEFINE_NAME(SheaveQuantizedGated)

 protected:
  ScratchSize scratch_size(
      const std::vector<mx::array>& inputs) const override {
    return gated_scratch(weights_, inputs[0].shape(0));
  }

  void run(
      const std::vector<mx::array>& inputs,
      float* output,
      const Scratch& scratch) const override {
    run_gated(
        {.weights = &weights_,
         .kind = kind_,
         .input = product_input(inputs[0], norm_.data(inputs), eps_),
         .out = output},
        scratch);
  }

 private:
  std::array<PackedWeight, 2> weights_;
  GateKind kind_;
  OptionalInput norm_;
  float eps_;
};

} // namespace

mx::array quantized_gated(
    const mx::array& x,
    const PackedWeight& gate,
    const PackedWeight& up,
    GateKind kind,
    const std::optional<NormWeight>& norm) {
  check_product("quantized_gated", x, gate);
  check_product("quantized_gated", x, up);
  check_norm("quantized_gated", norm, gate.layout.in_features);
  check_same_rows("quantized_gated", gate, up);
  if (use_reference()) {
    return quantized_gated_reference(x, gate, up, kind, norm);
  }
  std::vector<mx::array> inputs = {contiguous_input(x)};
  auto primitive =
      std::make_shared<QuantizedGatedPrimitive>(gate, up, kind, norm, inputs);
  return {
      {x.shape(0), gate.out_features},
      mx::float32,
      std::move(primitive),
      std::move(inputs)};
}

} // namespace sheave::kernels
