#include <mlx/ops.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "sheave/kernels/quantized_linear/optional_input.h"
#include "sheave/kernels/quantized_linear/packed_product.h"
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
    const int m = inputs[0].shape(0);
    const int k = inputs[0].shape(1);
    ScratchSize size = product_scratch(m, k, weights_);
    const Cut cut = cut_of(m, k);
    size.per_worker += 2 * static_cast<size_t>(cut.tokens) *
                       static_cast<size_t>(cut.panels * kPanelRows);
    return size;
  }

  void run(
      const std::vector<mx::array>& inputs,
      float* output,
      const Scratch& scratch) const override {
    const int m = inputs[0].shape(0);
    const int k = inputs[0].shape(1);
    const PreparedInput input = prepare_input(
        {.x = inputs[0].data<float>(),
         .m = m,
         .k = k,
         .norm_weight = norm_.data(inputs),
         .eps = eps_},
        weights_,
        scratch);
    const Cut cut = cut_of(m, k);
    const int n = weights_[0].out_features;
    const int panels = (n + kPanelRows - 1) / kPanelRows;
    const int columns = (panels + cut.panels - 1) / cut.panels;
    const int blocks = (m + cut.tokens - 1) / cut.tokens;
    thread_pool().run(columns * blocks, [&](int index, int worker) {
      const int panel = index % columns * cut.panels;
      const int token = index / columns * cut.tokens;
      run_part(
          input,
          {.panel = panel,
           .panels = std::min(cut.panels, panels - panel),
           .token = token,
           .tokens = std::min(cut.tokens, m - token)},
          scratch.worker(worker),
          output);
    });
  }

 private:
  /// Size of a unit of work.
  struct Cut {
    int panels;
    int tokens;
  };

  struct Part {
    int panel;
    int panels;
    int token;
    int tokens;
  };

  Cut cut_of(int m, int k) const {
    const int panels =
        (weights_[0].out_features + kPanelRows - 1) / kPanelRows;
    return {
        .panels =
            panels_per_task(panels, weights_[0].layout.panel_bytes(), m),
        .tokens = std::min(m, tokens_per_task(k))};
  }

  /// Both products of a part into scratch, then their gated product.
  void run_part(
      const PreparedInput& input,
      const Part& part,
      float* memory,
      float* output) const {
    const int n = weights_[0].out_features;
    const int first = part.panel * kPanelRows;
    const int count = std::min(part.panels * kPanelRows, n - first);
    const auto width = static_cast<size_t>(count);
    ScratchPieces pieces(memory);
    float* scales = pieces.take<float>(packed_scratch_floats(input.tokens.k));
    float* products[2];
    for (float*& product : products) {
      product = pieces.take<float>(static_cast<size_t>(part.tokens) * width);
    }
    for (size_t i = 0; i < 2; ++i) {
      PackedTask task = whole_task(
          input,
          i,
          {.weight = &weights_[i],
           .out = products[i],
           .bias = nullptr,
           .residual = nullptr});
      task.panels += static_cast<size_t>(part.panel) * task.panel_bytes;
      task.panel_end = part.panels;
      task.n = count;
      task.m_begin = part.token;
      task.m_end = part.token + part.tokens;
      task.out_stride = width;
      task.scratch = scales;
      kernel_table().packed_linear(task);
    }
    const auto apply = kind_ == GateKind::kSwiglu ? kernel_table().swiglu
                                                  : kernel_table().geglu_tanh;
    for (int token = 0; token < part.tokens; ++token) {
      const auto row = static_cast<size_t>(token);
      apply(
          products[0] + row * width,
          products[1] + row * width,
          count,
          output + (static_cast<size_t>(part.token) + row) *
                       static_cast<size_t>(n) +
              first);
    }
  }

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
  auto primitive = std::make_shared<QuantizedGatedPrimitive>(
      gate,
      up,
      kind,
      norm,
      inputs);
  return {
      {x.shape(0), gate.out_features},
      mx::float32,
      std::move(primitive),
      std::move(inputs)};
}

} // namespace sheave::kernels
