#include "sheave/kernels/quantized_linear/quantized_linear.h"

#include <mlx/ops.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "sheave/kernels/quantized_linear/optional_input.h"
#include "sheave/kernels/quantized_linear/packed_product.h"
#include "sheave/kernels/quantized_linear/quantized_checks.h"
#include "sheave/kernels/quantized_linear/quantized_reference.h"
#include "sheave/kernels/runtime.h"

namespace sheave::kernels {
namespace {

constexpr int kNormRows = 8; // per task

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
    ScratchSize size = product_scratch(
        inputs[0].shape(0),
        inputs[0].shape(1),
        {&weight_, 1});
    size.per_worker = std::max(
        size.per_worker,
        static_cast<size_t>(weight_.out_features));
    return size;
  }

  void run(
      const std::vector<mx::array>& inputs,
      float* output,
      const Scratch& scratch) const override {
    const bool normed = output_norm_.present();
    const PreparedInput input = prepare_input(
        {.x = inputs[0].data<float>(),
         .m = inputs[0].shape(0),
         .k = inputs[0].shape(1),
         .norm_weight = norm_.data(inputs),
         .eps = eps_},
        {&weight_, 1},
        scratch);
    const ProductOutput product = {
        .weight = &weight_,
        .out = output,
        .bias = bias_.data(inputs),
        .residual = normed ? nullptr : residual_.data(inputs)};
    multiply(input, {&product, 1}, scratch);
    if (normed) {
      norm_output(inputs, output, scratch);
    }
  }

 private:
  /// out = norm(out) + residual, row by row.
  void norm_output(
      const std::vector<mx::array>& inputs,
      float* output,
      const Scratch& scratch) const {
    const int m = inputs[0].shape(0);
    const auto n = static_cast<size_t>(weight_.out_features);
    const float* norm = output_norm_.data(inputs);
    const float* residual = residual_.data(inputs);
    thread_pool().run((m + kNormRows - 1) / kNormRows, [&](int task, int worker) {
      float* normed = scratch.worker(worker);
      const int end = std::min(m, (task + 1) * kNormRows);
      for (int token = task * kNormRows; token < end; ++token) {
        const size_t at = static_cast<size_t>(token) * n;
        kernel_table().rms_norm(
            output + at,
            norm,
            output_eps_,
            weight_.out_features,
            normed);
        for (size_t i = 0; i < n; ++i) {
          output[at + i] =
              normed[i] + (residual == nullptr ? 0.0F : residual[at + i]);
        }
      }
    });
  }

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
