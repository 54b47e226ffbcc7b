#include <mlx/ops.h>

#include <algorithm>
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

/// Inputs: attended, residual, then those of the norms and biases that are
/// inputs.
class QuantizedTailPrimitive : public CpuFloatPrimitive {
 public:
  QuantizedTailPrimitive(const LayerTail& tail, std::vector<mx::array>& inputs)
      : o_proj_(tail.o_proj),
        gate_up_{tail.gate_proj, tail.up_proj},
        down_proj_(tail.down_proj),
        kind_(tail.gate),
        o_bias_(tail.o_bias, inputs),
        down_bias_(tail.down_bias, inputs),
        attention_norm_(weight_of(tail.attention_output_norm), inputs),
        mlp_norm_(weight_of(tail.mlp_norm), inputs),
        mlp_output_norm_(weight_of(tail.mlp_output_norm), inputs),
        attention_eps_(eps_of(tail.attention_output_norm)),
        mlp_eps_(eps_of(tail.mlp_norm)),
        mlp_output_eps_(eps_of(tail.mlp_output_norm)) {}

  DEFINE_NAME(SheaveQuantizedTail)

 protected:
  ScratchSize scratch_size(
      const std::vector<mx::array>& inputs) const override {
    const int m = inputs[0].shape(0);
    ScratchSize size = {.shared = 0, .per_worker = 0};
    for (const ScratchSize& part :
         {linear_scratch(o_proj_, m),
          gated_scratch(gate_up_, m),
          linear_scratch(down_proj_, m)}) {
      size.shared = std::max(size.shared, part.shared);
      size.per_worker = std::max(size.per_worker, part.per_worker);
    }
    size.shared += ScratchPieces::floats<float>(hidden_floats(m)) +
                   ScratchPieces::floats<float>(inner_floats(m));
    return size;
  }

  void run(
      const std::vector<mx::array>& inputs,
      float* output,
      const Scratch& scratch) const override {
    const int m = inputs[0].shape(0);
    ScratchPieces pieces(scratch.shared);
    float* hidden = pieces.take<float>(hidden_floats(m));
    float* inner = pieces.take<float>(inner_floats(m));
    Scratch rest = scratch;
    rest.shared = pieces.take<float>(0);
    run_linear(
        {.weight = &o_proj_,
         .input = product_input(inputs[0], nullptr, 0),
         .bias = o_bias_.data(inputs),
         .output_norm = attention_norm_.data(inputs),
         .output_eps = attention_eps_,
         .residual = inputs[1].data<float>(),
         .out = hidden},
        rest);
    run_gated(
        {.weights = &gate_up_,
         .kind = kind_,
         .input =
             {.x = hidden,
              .m = m,
              .k = o_proj_.out_features,
              .norm_weight = mlp_norm_.data(inputs),
              .eps = mlp_eps_},
         .out = inner},
        rest);
    run_linear(
        {.weight = &down_proj_,
         .input =
             {.x = inner,
              .m = m,
              .k = down_proj_.layout.in_features,
              .norm_weight = nullptr,
              .eps = 0},
         .bias = down_bias_.data(inputs),
         .output_norm = mlp_output_norm_.data(inputs),
         .output_eps = mlp_output_eps_,
         .residual = hidden,
         .out = output},
        rest);
  }

 private:
  size_t hidden_floats(int m) const {
    return static_cast<size_t>(m) * static_cast<size_t>(o_proj_.out_features);
  }
  size_t inner_floats(int m) const {
    return static_cast<size_t>(m) *
           static_cast<size_t>(gate_up_[0].out_features);
  }

  PackedWeight o_proj_;
  std::array<PackedWeight, 2> gate_up_;
  PackedWeight down_proj_;
  GateKind kind_;
  OptionalInput o_bias_;
  OptionalInput down_bias_;
  OptionalInput attention_norm_;
  OptionalInput mlp_norm_;
  OptionalInput mlp_output_norm_;
  float attention_eps_;
  float mlp_eps_;
  float mlp_output_eps_;
};

} // namespace

mx::array quantized_tail(
    const mx::array& attended,
    const mx::array& residual,
    const LayerTail& tail) {
  check_tail(attended, residual, tail);
  if (use_reference()) {
    return quantized_tail_reference(attended, residual, tail);
  }
  std::vector<mx::array> inputs = {
      contiguous_input(attended),
      contiguous_input(residual)};
  auto primitive = std::make_shared<QuantizedTailPrimitive>(tail, inputs);
  return {
      residual.shape(),
      mx::float32,
      std::move(primitive),
      std::move(inputs)};
}

} // namespace sheave::kernels
