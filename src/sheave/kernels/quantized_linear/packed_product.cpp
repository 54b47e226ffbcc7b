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

/// How the panels of all weights are handed out: in pieces of `step` panels,
/// one weight after the other, for each block of tokens.
struct WorkCut {
  std::array<int, kMaxWeights> step = {};
  std::array<int, kMaxWeights> pieces = {};
  int pieces_per_block = 0;
  int block_tokens = 0;
  int blocks = 0;
};

WorkCut cut_work(std::span<const ProductOutput> outputs, int m, int k) {
  WorkCut cut;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const PackedWeight& weight = *outputs[i].weight;
    const int panels = weight.panels();
    cut.step[i] = panels_per_task(panels, weight.layout.panel_bytes(), m);
    cut.pieces[i] = (panels + cut.step[i] - 1) / cut.step[i];
    cut.pieces_per_block += cut.pieces[i];
  }
  cut.block_tokens = tokens_per_task(k);
  cut.blocks = (m + cut.block_tokens - 1) / cut.block_tokens;
  return cut;
}

/// Limits a weight's task to piece `piece` of its panels and to a block of
/// tokens.
void limit_task(
    const WorkCut& cut,
    int step,
    int piece,
    int block,
    PackedTask& task) {
  task.panel_begin = piece * step;
  task.panel_end = std::min(task.panel_end, task.panel_begin + step);
  task.m_begin = block * cut.block_tokens;
  task.m_end = std::min(task.m_end, task.m_begin + cut.block_tokens);
  const size_t skipped = static_cast<size_t>(task.m_begin) * task.out_stride;
  task.out += skipped;
  task.residual += task.residual == nullptr ? 0 : skipped;
}

} // namespace

ScratchSize
product_scratch(int m, int k, std::span<const PackedWeight> weights) {
  using Pieces = ScratchPieces;
  const size_t rows = places_of(m);
  const auto columns = static_cast<size_t>(k);
  size_t shared = Pieces::floats<int8_t>(rows * columns) +
                  Pieces::floats<float>(rows * columns / 32) +
                  Pieces::floats<int32_t>(rows * columns / 16);
  for (const PackedWeight& weight : weights) {
    shared += 2 * Pieces::floats<float>(rows * sums_per_row(weight.layout));
  }
  return {
      .shared = shared,
      .per_worker = std::max(columns, packed_scratch_floats(k))};
}

PreparedInput prepare_input(
    const ProductInput& input,
    std::span<const PackedWeight> weights,
    const Scratch& scratch) {
  const size_t places = places_of(input.m);
  const auto k = static_cast<size_t>(input.k);
  ScratchPieces pieces(scratch.shared);
  PreparedInput prepared = {};
  prepared.tokens = {
      .quants = pieces.take<int8_t>(places * k),
      .scales = pieces.take<float>(places * k / 32),
      .sums = pieces.take<int32_t>(places * k / 16),
      .m = input.m,
      .k = input.k};
  for (size_t i = 0; i < weights.size(); ++i) {
    const size_t count = places * sums_per_row(weights[i].layout);
    prepared.starts[i] = pieces.take<int32_t>(count);
    prepared.bias_sums[i] = pieces.take<float>(count);
  }

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
      fill_sums(
          weights[i].layout,
          tokens,
          token,
          prepared.starts[i],
          prepared.bias_sums[i]);
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
  const PackedLayout& layout = output.weight->layout;
  const int n = output.weight->out_features;
  return {
      .layout = layout,
      .panels = output.weight->data.data<uint8_t>(),
      .panel_bytes = layout.panel_bytes(),
      .scale_bytes = layout.scale_bytes(),
      .panel_begin = 0,
      .panel_end = output.weight->panels(),
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
  // Few tokens: memory is the limit, and each task's first lines come slowly,
  // so few large tasks. Many tokens: each panel is work enough.
  constexpr size_t kTaskBytes = size_t{512} << 10;
  constexpr size_t kFewestTasks = 8;
  if (m > kTokenTile) {
    return 1;
  }
  const auto count = static_cast<size_t>(panels);
  const size_t tasks = std::max(kFewestTasks, count * panel_bytes / kTaskBytes);
  return static_cast<int>((count + tasks - 1) / tasks);
}

int tokens_per_task(int k) {
  constexpr int kBlockBytes = 1 << 20;
  return std::max(1, kBlockBytes / k / kTokenTile) * kTokenTile;
}

void multiply(
    const PreparedInput& input,
    std::span<const ProductOutput> outputs,
    const Scratch& scratch) {
  const int m = input.tokens.m;
  const WorkCut cut = cut_work(outputs, m, input.tokens.k);
  std::array<PackedTask, kMaxWeights> tasks = {};
  for (size_t i = 0; i < outputs.size(); ++i) {
    tasks[i] = whole_task(input, i, outputs[i]);
  }
  const int total = cut.pieces_per_block * cut.blocks;
  thread_pool().run(total, [&](int index, int worker) {
    int piece = index % cut.pieces_per_block;
    size_t i = 0;
    while (piece >= cut.pieces[i]) {
      piece -= cut.pieces[i++];
    }
    PackedTask task = tasks[i];
    limit_task(cut, cut.step[i], piece, index / cut.pieces_per_block, task);
    task.scratch = scratch.worker(worker);
    kernel_table().packed_linear(task);
  });
}

} // namespace sheave::kernels
