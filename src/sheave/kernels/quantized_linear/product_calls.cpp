#include "sheave/kernels/quantized_linear/product_calls.h"

#include <algorithm>

#include "sheave/kernels/runtime.h"

namespace sheave::kernels {
namespace {

constexpr int kNormRows = 8; // per task

/// out = norm(out) + residual, row by row.
void norm_output(const LinearCall& call, const Scratch& scratch) {
  const int m = call.input.m;
  const auto n = static_cast<size_t>(call.weight->out_features);
  const int tasks = (m + kNormRows - 1) / kNormRows;
  thread_pool().run(tasks, [&](int task, int worker) {
    float* normed = scratch.worker(worker);
    const int end = std::min(m, (task + 1) * kNormRows);
    for (int token = task * kNormRows; token < end; ++token) {
      const size_t at = static_cast<size_t>(token) * n;
      kernel_table().rms_norm(
          call.out + at,
          call.output_norm,
          call.output_eps,
          call.weight->out_features,
          normed);
      for (size_t i = 0; i < n; ++i) {
        const float residual =
            call.residual == nullptr ? 0.0F : call.residual[at + i];
        call.out[at + i] = normed[i] + residual;
      }
    }
  });
}

/// Size of a unit of gated work, and one such unit.
struct GatedCut {
  int panels;
  int tokens;
};

struct GatedPart {
  int panel;
  int panels;
  int token;
  int tokens;
};

GatedCut cut_gated(const std::array<PackedWeight, 2>& weights, int m) {
  const PackedLayout& layout = weights[0].layout;
  return {
      .panels = panels_per_task(weights[0].panels(), layout.panel_bytes(), m),
      .tokens = std::min(m, tokens_per_task(layout.in_features))};
}

/// One of a part's products, into [part.tokens, count].
void multiply_part(
    const PreparedInput& input,
    size_t index,
    const PackedWeight& weight,
    const GatedPart& part,
    int count,
    float* scales,
    float* out) {
  PackedTask task = whole_task(
      input,
      index,
      {.weight = &weight, .out = out, .bias = nullptr, .residual = nullptr});
  task.panels += static_cast<size_t>(part.panel) * task.panel_bytes;
  task.panel_end = part.panels;
  task.n = count;
  task.m_begin = part.token;
  task.m_end = part.token + part.tokens;
  task.out_stride = static_cast<size_t>(count);
  task.scratch = scales;
  kernel_table().packed_linear(task);
}

/// Both products of a part into scratch, then their gated product.
void run_gated_part(
    const GatedCall& call,
    const PreparedInput& input,
    const GatedPart& part,
    float* memory) {
  const auto& weights = *call.weights;
  const int n = weights[0].out_features;
  const int first = part.panel * kPanelRows;
  const int count = std::min(part.panels * kPanelRows, n - first);
  const auto width = static_cast<size_t>(count);
  ScratchPieces pieces(memory);
  float* scales = pieces.take<float>(packed_scratch_floats(input.tokens.k));
  std::array<float*, 2> products = {};
  for (size_t i = 0; i < products.size(); ++i) {
    products[i] = pieces.take<float>(static_cast<size_t>(part.tokens) * width);
    multiply_part(input, i, weights[i], part, count, scales, products[i]);
  }
  const auto apply = kernel_table().gate(call.kind);
  for (int i = 0; i < part.tokens; ++i) {
    const auto row = static_cast<size_t>(i);
    const size_t token = static_cast<size_t>(part.token) + row;
    apply(
        products[0] + row * width,
        products[1] + row * width,
        count,
        call.out + token * static_cast<size_t>(n) + first);
  }
}

} // namespace

ScratchSize linear_scratch(const PackedWeight& weight, int m) {
  ScratchSize size =
      product_scratch(m, weight.layout.in_features, {&weight, 1});
  size.per_worker =
      std::max(size.per_worker, static_cast<size_t>(weight.out_features));
  return size;
}

void run_linear(const LinearCall& call, const Scratch& scratch) {
  const bool normed = call.output_norm != nullptr;
  const PreparedInput input =
      prepare_input(call.input, {call.weight, 1}, scratch);
  const ProductOutput product = {
      .weight = call.weight,
      .out = call.out,
      .bias = call.bias,
      .residual = normed ? nullptr : call.residual};
  multiply(input, {&product, 1}, scratch);
  if (normed) {
    norm_output(call, scratch);
  }
}

ScratchSize gated_scratch(const std::array<PackedWeight, 2>& weights, int m) {
  ScratchSize size = product_scratch(m, weights[0].layout.in_features, weights);
  const GatedCut cut = cut_gated(weights, m);
  size.per_worker += 2 * static_cast<size_t>(cut.tokens) *
                     static_cast<size_t>(cut.panels * kPanelRows);
  return size;
}

void run_gated(const GatedCall& call, const Scratch& scratch) {
  const PreparedInput input = prepare_input(call.input, *call.weights, scratch);
  const int m = call.input.m;
  const GatedCut cut = cut_gated(*call.weights, m);
  if (m == 0) {
    return;
  }
  const int panels = (*call.weights)[0].panels();
  const int columns = (panels + cut.panels - 1) / cut.panels;
  const int blocks = (m + cut.tokens - 1) / cut.tokens;
  thread_pool().run(columns * blocks, [&](int index, int worker) {
    const int panel = index % columns * cut.panels;
    const int token = index / columns * cut.tokens;
    run_gated_part(
        call,
        input,
        {.panel = panel,
         .panels = std::min(cut.panels, panels - panel),
         .token = token,
         .tokens = std::min(cut.tokens, m - token)},
        scratch.worker(worker));
  });
}

} // namespace sheave::kernels
