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
  inputs.push_back(mx::contiguous(planes.keys));
  inputs.push_back(mx::contiguous(planes.values));
  if (planes.bits != 0) {
    for (const auto* x :
         {&planes.key_scales,
          &planes.key_biases,
          &planes.value_scales,
          &planes.value_biases}) {
      inputs.push_back(mx::contiguous(**x));
    }
  }
  return spec;
}

/// Where [S, n] of one row and K/V head begins in a [B, Hkv, S, n] array.
const uint8_t* plane_of(const mx::array& x, int row, int kv_head) {
  const auto plane = static_cast<size_t>(row * x.shape(1) + kv_head);
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
    return {
        .shared = 0,
        .per_worker = attention_scratch_floats(inputs[0].shape(2))};
  }

  void run(
      const std::vector<mx::array>& inputs,
      float* output,
      const Scratch& scratch) const override {
    const AttentionTile common = common_tile(inputs, output);
    const int tile_tokens = std::max(1, kAttentionPairs / common.group);
    const std::vector<TileStart> starts = cut_tiles(tile_tokens);
    const auto tasks = static_cast<int>(starts.size()) * plan_.kv_heads;
    thread_pool().run(tasks, [&](int task, int worker) {
      AttentionTile tile = common;
      tile.scratch = scratch.worker(worker);
      place(
          starts[static_cast<size_t>(task / plan_.kv_heads)],
          task % plan_.kv_heads,
          tile_tokens,
          inputs,
          tile);
      kernel_table().attention(tile);
    });
  }

 private:
  /// The first token of a tile, counted within its row.
  struct TileStart {
    size_t row;
    int token;
  };

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

  std::vector<TileStart> cut_tiles(int tile_tokens) const {
    std::vector<TileStart> starts;
    for (size_t row = 0; row < plan_.rows.size(); ++row) {
      for (int token = 0; token < plan_.rows[row].num_tokens;
           token += tile_tokens) {
        starts.push_back({row, token});
      }
    }
    return starts;
  }

  /// Fills in what is particular to one tile and K/V head.
  void place(
      const TileStart& start,
      int kv_head,
      int tile_tokens,
      const std::vector<mx::array>& inputs,
      AttentionTile& tile) const {
    const RowView& row = plan_.rows[start.row];
    place_planes(
        plan_.planes[static_cast<size_t>(row.planes)],
        inputs,
        row.plane_row,
        kv_head,
        tile);
    tile.first_head = kv_head * tile.group;
    tile.first_token = row.first_token + start.token;
    tile.num_tokens = std::min(tile_tokens, row.num_tokens - start.token);
    tile.first_position = row.first_position + start.token;
    int columns = 0;
    for (size_t i = 0; i < row.ranges.size(); ++i) {
      tile.range_begin[i] = row.ranges[i].begin;
      tile.range_size[i] = row.ranges[i].size();
      columns += row.ranges[i].size();
    }
    tile.oldest_position = row.first_position + row.num_tokens - columns;
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
