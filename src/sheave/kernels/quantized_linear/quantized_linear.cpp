#include "sheave/kernels/quantized_linear/quantized_linear.h"

#include <mlx/ops.h>

#include <utility>
#include <vector>

#include "sheave/kernels/quantized_linear/optional_input.h"
#include "sheave/kernels/quantized_linear/product_calls.h"
#include "sheave/kernels/quantized_linear/quantized_checks.h"
#include "sheave/kernels/quantized_linear/quantized_reference.h"
#include "sheave/kernels/runtime.h"

namespace sheave::kernels {
namespace {

/// Inputs: x, then those of the options that are inputs.
class QuantizedLinearPrimitive : public CpuFloatPrimitive {
 public:
  QuantizedLinearPrimitive(
      const PackedWeight& weight,
      const QuantizedLinearOptions& options,
      std::vector<mx::array>& inputs)
      : weight_(weight),
        norm_(weight_of(options.norm), inputs),
        bias_(options.bias, inputs),
        output_norm_(weight_of(options.output_norm), inputs),
        residual_(options.residual, inputs),
        eps_(eps_of(options.norm)),
        output_eps_(eps_of(options.output_norm)) {}

  DEFINE_NAME(SheaveQuantizedLinear)

 protected:
  ScratchSize scratch_size(
      const std::vector<mx::array>& inputs) const override {
    return linear_scratch(weight_, inputs[0].shape(0));
  }

  void run(
      const std::vector<mx::array>& inputs,
      float* output,
      const Scratch& scratch) const override {
    run_linear(
        {.weight = &weight_,
         .input = product_input(inputs[0], norm_.data(inputs), eps_),
         .bias = bias_.data(inputs),
         .output_norm = output_norm_.data(inputs),
         .output_eps = output_eps_,
         .residual = residual_.data(inputs),
         .out = output},
        scratch);
  }

 private:
  PackedWeight weight_;
  OptionalInput norm_;
  OptionalInput bias_;
  OptionalInput output_norm_;
  OptionalInput residual_;
  float eps_;
  float output_eps_;
};

} // namespace

mx::array quantized_linear(
    const mx::array& x,
    const PackedWeight& weight,
    const QuantizedLinearOptions& options) {
  check_product("quantized_linear", x, weight);
  check_norm("quantized_linear", options.norm, weight.layout.in_features);
  check_norm("quantized_linear", options.output_norm, weight.out_features);
  check_vector("quantized_linear", options.bias, weight.out_features);
  check_residual("quantized_linear", options.residual, x, weight);
  if (use_reference()) {
    return quantized_linear_reference(x, weight, options);
  }
  std::vector<mx::array> inputs = {contiguous_input(x)};
  auto primitive =
      std::make_shared<QuantizedLinearPrimitive>(weight, options, inputs);
  return {
      {x.shape(0), weight.out_features},
      mx::float32,
      std::move(primitive),
      std::move(inputs)};
}

} // namespace sheave::kernels
