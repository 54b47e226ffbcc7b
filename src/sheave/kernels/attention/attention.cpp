#include "sheave/kernels/attention/attention.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "sheave/kernels/attention/attention_reference.h"
#include "sheave/kernels/attention/kv_view_check.h"
#include "sheave/kernels/cpu_primitive.h"
#include "sheave/kernels/runtime.h"
#include "sheave/kernels/weight_rows.h"

namespace sheave::kernels {
namespace {

/// KVPlanes without its arrays, which travel as a primitive's inputs from
/// index `first` on: keys, values, and where quantized the scales and biases
/// of the keys and those of the values.
struct PlanesSpec {
  size_t first;
  int bits;
  int group_size;
};

PlanesSpec append_arrays(
    const KVPlanes& planes,
    std::vector<mx::array>& inputs) {
  const PlanesSpec spec = {inputs.size(), planes.bits, planes.group_size};
  inputs.push_back(contiguous_stored(planes.keys));
  inputs.push_back(contiguous_stored(planes.values));
  if (planes.bits != 0) {
    for (const auto* x :
         {&planes.key_scales,
          &planes.key_biases,
          &planes.value_scales,
          &planes.value_biases}) {
      inputs.push_back(contiguous_stored(**x));
    }
  }
  return spec;
}

/// Where [S, n] of one row and K/V head begins in a [B, Hkv, S, n] array.
const uint8_t* plane_of(const mx::array& x, int row, int kv_head) {
  const size_t plane =
      static_cast<size_t>(row) * static_cast<size_t>(x.shape(1)) +
      static_cast<size_t>(kv_head);
  const size_t plane_bytes = static_cast<size_t>(x.shape(2)) *
                             static_cast<size_t>(x.shape(3)) * x.itemsize();
  return x.data<uint8_t>() + plane * plane_bytes;
}

/// Fills in where a tile reads keys and values.
void place_planes(
    const PlanesSpec& spec,
    const std::vector<mx::array>& inputs,
    int row,
    int kv_head,
    AttentionTile& tile) {
  const auto plane = [&](size_t i) {
    return plane_of(inputs[spec.first + i], row, kv_head);
  };
  tile.keys = {plane(0), nullptr, nullptr};
  tile.values = {plane(1), nullptr, nullptr};
  tile.bits = spec.bits;
  tile.group_size = spec.group_size;
  if (spec.bits != 0) {
    tile.keys = {plane(0), plane(2), plane(3)};
    tile.values = {plane(1), plane(4), plane(5)};
  }
  tile.plane_type =
      float_type(inputs[spec.first + (spec.bits != 0 ? 2 : 0)].dtype());
}

/// Fills in which columns hold which positions.
void place_row(const RowView& row, AttentionTile& tile) {
  int columns = 0;
  for (size_t i = 0; i < row.ranges.size(); ++i) {
    tile.range_begin[i] = row.ranges[i].begin;
    tile.range_size[i] = row.ranges[i].size();
    columns += row.ranges[i].size();
  }
  tile.oldest_position = row.first_position + row.num_tokens - columns;
}

/// One span of one tile, and where its sums go.
struct SpanTask {
  size_t tile;
  int span;
  size_t sums;
};

/// Tiles cut into spans. Empty where whole tiles are enough to go round.
struct SpanTasks {
  std::vector<SpanTask> tasks;
  std::vector<size_t> tile_sums; // where each tile's first sums go
  size_t sums_floats = 0;
};

/// Cuts tiles into spans while there are few of them for the threads: the
/// bits are the same either way.
SpanTasks cut_spans(const std::vector<AttentionTile>& tiles) {
  constexpr size_t kTilesPerThread = 4;
  constexpr size_t kMostFloats = size_t{1} << 22;
  const auto threads = static_cast<size_t>(num_threads());
  SpanTasks result;
  if (threads == 1 || tiles.size() >= kTilesPerThread * threads) {
    return result;
  }
  for (size_t i = 0; i < tiles.size(); ++i) {
    const AttentionTile& tile = tiles[i];
    result.tile_sums.push_back(result.sums_floats);
    for (int span = first_span(tile); span < end_span(tile); ++span) {
      result.tasks.push_back({i, span, result.sums_floats});
      result.sums_floats +=
          attention_sums_floats(tile.num_tokens * tile.group, tile.head_dim);
    }
  }
  const bool worth_it =
      result.tasks.size() > tiles.size() && result.sums_floats <= kMostFloats;
  return worth_it ? result : SpanTasks{};
}

/// What AttentionPrimitive keeps of attention()'s arguments.
struct AttentionPlan {
  std::vector<RowView> rows;
  std::vector<PlanesSpec> planes;
  int kv_heads;
  int window;
  float scale;
  float softcap;
  bool has_sinks;
};

/// Inputs: queries, the arrays of all planes, sinks if there are any.
class AttentionPrimitive : public CpuFloatPrimitive {
 public:
  explicit AttentionPrimitive(AttentionPlan plan) : plan_(std::move(plan)) {}

  DEFINE_NAME(SheaveAttention)

 protected:
  ScratchSize scratch_size(
      const std::vector<mx::array>& inputs) const override {
    const SpanTasks spans = cut_spans(make_tiles(inputs, nullptr));
    return {
        .shared = spans.sums_floats,
        .per_worker = attention_scratch_floats(inputs[0].shape(2))};
  }

  void run(
      const std::vector<mx::array>& inputs,
      float* output,
      const Scratch& scratch) const override {
    std::vector<AttentionTile> tiles = make_tiles(inputs, output);
    const SpanTasks spans = cut_spans(tiles);
    const auto tile_of_worker = [&](size_t index, int worker) {
      AttentionTile tile = tiles[index];
      tile.scratch = scratch.worker(worker);
      return tile;
    };
    const auto num_tiles = static_cast<int>(tiles.size());
    if (spans.tasks.empty()) {
      // The last tiles of a row see the most and go first, so that none of
      // them is waited for at the end.
      thread_pool().run(num_tiles, [&](int i, int worker) {
        const auto tile = static_cast<size_t>(num_tiles - 1 - i);
        kernel_table().attention(tile_of_worker(tile, worker));
      });
      return;
    }
    const auto num_tasks = static_cast<int>(spans.tasks.size());
    thread_pool().run(num_tasks, [&](int i, int worker) {
      const SpanTask& task = spans.tasks[static_cast<size_t>(i)];
      kernel_table().attention_span(
          tile_of_worker(task.tile, worker),
          task.span,
          scratch.shared + task.sums);
    });
    thread_pool().run(num_tiles, [&](int i, int worker) {
      const auto tile = static_cast<size_t>(i);
      kernel_table().attention_merge(
          tile_of_worker(tile, worker),
          scratch.shared + spans.tile_sums[tile]);
    });
  }

 private:
  /// What all tiles have in common.
  AttentionTile common_tile(const std::vector<mx::array>& inputs, float* output)
      const {
    const mx::array& queries = inputs[0];
    AttentionTile tile = {};
    tile.queries = queries.data<float>();
    tile.out = output;
    tile.sinks = plan_.has_sinks ? inputs.back().data<float>() : nullptr;
    tile.query_heads = queries.shape(1);
    tile.group = queries.shape(1) / plan_.kv_heads;
    tile.head_dim = queries.shape(2);
    tile.window = plan_.window;
    tile.scale = plan_.scale;
    tile.softcap = plan_.softcap;
    return tile;
  }

  /// All tiles: some tokens of a row, one K/V head each.
  std::vector<AttentionTile> make_tiles(
      const std::vector<mx::array>& inputs,
      float* output) const {
    AttentionTile tile = common_tile(inputs, output);
    const int tile_tokens = std::max(1, kAttentionPairs / tile.group);
    std::vector<AttentionTile> tiles;
    for (const RowView& row : plan_.rows) {
      place_row(row, tile);
      for (int token = 0; token < row.num_tokens; token += tile_tokens) {
        tile.first_token = row.first_token + token;
        tile.num_tokens = std::min(tile_tokens, row.num_tokens - token);
        tile.first_position = row.first_position + token;
        for (int kv_head = 0; kv_head < plan_.kv_heads; ++kv_head) {
          tile.first_head = kv_head * tile.group;
          const PlanesSpec& spec =
              plan_.planes[static_cast<size_t>(row.planes)];
          place_planes(spec, inputs, row.plane_row, kv_head, tile);
          tiles.push_back(tile);
        }
      }
    }
    return tiles;
  }

  AttentionPlan plan_;
};

} // namespace

mx::array attention(
    const mx::array& queries,
    const KVView& view,
    const AttentionOptions& options) {
  check_attention(queries, view, options);
  if (use_reference()) {
    return attention_reference(queries, view, options);
  }
  AttentionPlan plan = {
      .rows = view.rows,
      .planes = {},
      .kv_heads = view.planes[0].keys.shape(1),
      .window = view.window,
      .scale = options.scale,
      .softcap = options.logit_softcap,
      .has_sinks = options.sinks.has_value()};
  std::vector<mx::array> inputs = {contiguous_input(queries)};
  for (const KVPlanes& planes : view.planes) {
    plan.planes.push_back(append_arrays(planes, inputs));
  }
  if (options.sinks) {
    inputs.push_back(contiguous_input(*options.sinks));
  }
  return make_output<AttentionPrimitive>(
      {queries.shape(0), queries.shape(1) * queries.shape(2)},
      std::move(inputs),
      std::move(plan));
}

} // namespace sheave::kernels
