#include "sheave/kernels/quantized_linear/packed_product.h"

#include <algorithm>
#include <cstring>

#include "sheave/kernels/runtime.h"

namespace sheave::kernels {
namespace {

size_t sums_per_row(const PackedLayout& layout) {
  return static_cast<size_t>(layout.in_features / layout.sum_columns());
}

size_t tiles_of(int m) {
  return static_cast<size_t>((m + kTokenTile - 1) / kTokenTile);
}

/// Places for the tokens of `m` rows, whole tiles.
size_t places_of(int m) {
  return tiles_of(m) * kTokenTile;
}

/// What one weight's sums of a token begin with, and what its biases multiply.
void fill_sums(
    const PackedLayout& layout,
    const QuantizedTokens& x,
    int token,
    int32_t* starts,
    float* bias_sums) {
  const int32_t factor = kernel_table().packed_start_factor(layout);
  const size_t count = sums_per_row(layout);
  const size_t parts = layout.sum_columns() == 32 ? 2 : 1; // sums of 16
  const auto tile = static_cast<size_t>(token / kTokenTile);
  const auto place = static_cast<size_t>(token % kTokenTile);
  const auto groups = static_cast<size_t>(x.k / 32);
  for (size_t i = 0; i < count; ++i) {
    const size_t from = (tile * 2 * groups + i * parts) * kTokenTile + place;
    const int32_t sum =
        x.sums[from] + (parts == 2 ? x.sums[from + kTokenTile] : 0);
    const size_t group = tile * groups + i * parts / 2;
    const size_t to = (tile * count + i) * kTokenTile + place;
    starts[to] = factor * sum;
    bias_sums[to] =
        x.scales[group * kTokenTile + place] * static_cast<float>(sum);
  }
}

/// Rows of the input per unit of work.
constexpr int kPrepareRows = 8;

/// A part of one weight's panels, for all tokens or a block of them.
struct Work {
  size_t weight;
  int panel_begin;
  int panel_end;
  int m_begin;
  int m_end;
};

std::vector<Work> cut_work(
    std::span<const ProductOutput> outputs,
    int m,
    int k) {
  std::vector<Work> work;
  const int block = tokens_per_task(k);
  for (int token = 0; token < m; token += block) {
    for (size_t i = 0; i < outputs.size(); ++i) {
      const PackedSpec& spec = *outputs[i].spec;
      const int panels = (spec.out_features + kPanelRows - 1) / kPanelRows;
      const int step = panels_per_task(panels, spec.layout.panel_bytes(), m);
      for (int panel = 0; panel < panels; panel += step) {
        work.push_back(
            {.weight = i,
             .panel_begin = panel,
             .panel_end = std::min(panels, panel + step),
             .m_begin = token,
             .m_end = std::min(m, token + block)});
      }
    }
  }
  return work;
}

} // namespace

ScratchSize
product_scratch(int m, int k, std::span<const PackedSpec> weights) {
  using Pieces = ScratchPieces;
  const size_t rows = places_of(m);
  const auto columns = static_cast<size_t>(k);
  size_t shared = Pieces::floats<int8_t>(rows * columns) +
                  Pieces::floats<float>(rows * columns / 32) +
                  Pieces::floats<int32_t>(rows * columns / 16);
  for (const PackedSpec& weight : weights) {
    shared += 2 * Pieces::floats<float>(rows * sums_per_row(weight.layout));
  }
  return {
      .shared = shared,
      .per_worker = std::max(columns, packed_scratch_floats(k))};
}

PreparedInput prepare_input(
    const ProductInput& input,
    std::span<const PackedSpec> weights,
    const Scratch& scratch) {
  const size_t places = places_of(input.m);
  const auto k = static_cast<size_t>(input.k);
  ScratchPieces pieces(scratch.shared);
  PreparedInput prepared;
  prepared.tokens = {
      .quants = pieces.take<int8_t>(places * k),
      .scales = pieces.take<float>(places * k / 32),
      .sums = pieces.take<int32_t>(places * k / 16),
      .m = input.m,
      .k = input.k};
  std::vector<int32_t*> starts;
  std::vector<float*> bias_sums;
  for (const PackedSpec& weight : weights) {
    const size_t count = places * sums_per_row(weight.layout);
    starts.push_back(pieces.take<int32_t>(count));
    bias_sums.push_back(pieces.take<float>(count));
  }
  prepared.starts.assign(starts.begin(), starts.end());
  prepared.bias_sums.assign(bias_sums.begin(), bias_sums.end());

  const KernelTable& table = kernel_table();
  const QuantizedTokens& tokens = prepared.tokens;
  const auto prepare_token = [&](int token, int worker) {
    const float* x = input.x + static_cast<size_t>(token) * k;
    if (input.norm_weight != nullptr) {
      float* normed = scratch.worker(worker);
      table.rms_norm(x, input.norm_weight, input.eps, input.k, normed);
      x = normed;
    }
    table.quantize_token(x, token, tokens);
    for (size_t i = 0; i < weights.size(); ++i) {
      fill_sums(weights[i].layout, tokens, token, starts[i], bias_sums[i]);
    }
  };
  const int tasks = (input.m + kPrepareRows - 1) / kPrepareRows;
  thread_pool().run(tasks, [&](int task, int worker) {
    const int end = std::min(input.m, (task + 1) * kPrepareRows);
    for (int token = task * kPrepareRows; token < end; ++token) {
      prepare_token(token, worker);
    }
  });
  return prepared;
}

PackedTask whole_task(
    const PreparedInput& input,
    size_t index,
    const ProductOutput& output) {
  const PackedLayout& layout = output.spec->layout;
  const int n = output.spec->out_features;
  return {
      .layout = layout,
      .panels = output.panels,
      .panel_bytes = layout.panel_bytes(),
      .scale_bytes = layout.scale_bytes(),
      .panel_begin = 0,
      .panel_end = (n + kPanelRows - 1) / kPanelRows,
      .x = input.tokens,
      .starts = input.starts[index],
      .bias_sums = input.bias_sums[index],
      .m_begin = 0,
      .m_end = input.tokens.m,
      .out = output.out,
      .out_stride = static_cast<size_t>(n),
      .n = n,
      .bias = output.bias,
      .residual = output.residual,
      .scratch = nullptr};
}

int panels_per_task(int panels, size_t panel_bytes, int m) {
  // About 32 KiB of weights when tokens are few, larger pieces of a large
  // matrix; one panel when each is multiplied with many tokens.
  constexpr size_t kTaskBytes = size_t{32} << 10;
  if (m > 16) {
    return 1;
  }
  const int few = static_cast<int>(std::max<size_t>(1, kTaskBytes / panel_bytes));
  return std::max(few, panels / 256);
}

int tokens_per_task(int k) {
  constexpr int kBlockBytes = 1 << 20;
  return std::max(1, kBlockBytes / k / kTokenTile) * kTokenTile;
}

void multiply(
    const PreparedInput& input,
    std::span<const ProductOutput> outputs,
    const Scratch& scratch) {
  std::vector<PackedTask> tasks;
  tasks.reserve(outputs.size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    tasks.push_back(whole_task(input, i, outputs[i]));
  }
  const std::vector<Work> work = cut_work(outputs, input.tokens.m, input.tokens.k);
  thread_pool().run(static_cast<int>(work.size()), [&](int index, int worker) {
    const Work& part = work[static_cast<size_t>(index)];
    PackedTask task = tasks[part.weight];
    task.panel_begin = part.panel_begin;
    task.panel_end = part.panel_end;
    task.m_begin = part.m_begin;
    task.m_end = part.m_end;
    task.scratch = scratch.worker(worker);
    const size_t skipped =
        static_cast<size_t>(part.m_begin) * task.out_stride;
    task.out += skipped;
    task.residual += task.residual == nullptr ? 0 : skipped;
    kernel_table().packed_linear(task);
  });
}

} // namespace sheave::kernels
