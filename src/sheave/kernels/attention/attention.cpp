#include "sheave/kernels/attention/attention.h"

#include <algorithm>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "sheave/kernels/attention/attention_reference.h"
#include "sheave/kernels/cpu_primitive.h"
#include "sheave/kernels/runtime.h"
#include "sheave/kernels/weight_rows.h"

namespace sheave::kernels {
namespace {

/// Inputs: queries, keys, values, sinks if there are any.
class AttentionPrimitive : public CpuFloatPrimitive {
 public:
  AttentionPrimitive(
      std::vector<RowView> rows,
      int window,
      const AttentionOptions& options)
      : rows_(std::move(rows)),
        window_(window),
        scale_(options.scale),
        softcap_(options.logit_softcap),
        has_sinks_(options.sinks.has_value()) {}

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
    const mx::array& queries = inputs[0];
    const mx::array& keys = inputs[1];
    const int kv_heads = keys.shape(1);
    const int group = queries.shape(1) / kv_heads;
    const int tile_tokens = std::max(1, kAttentionPairs / group);
    const std::vector<TileStart> starts = cut_tiles(tile_tokens);
    AttentionTile tile = {};
    tile.queries = queries.data<float>();
    tile.out = output;
    tile.sinks = has_sinks_ ? inputs[3].data<float>() : nullptr;
    tile.plane_type = float_type(keys.dtype());
    tile.query_heads = queries.shape(1);
    tile.group = group;
    tile.head_dim = queries.shape(2);
    tile.window = window_;
    tile.scale = scale_;
    tile.softcap = softcap_;
    const auto tasks = static_cast<int>(starts.size()) * kv_heads;
    thread_pool().run(tasks, [&](int task, int worker) {
      AttentionTile part = tile;
      part.scratch = scratch.worker(worker);
      place(
          starts[static_cast<size_t>(task / kv_heads)],
          task % kv_heads,
          tile_tokens,
          inputs,
          part);
      kernel_table().attention(part);
    });
  }

 private:
  /// The first token of a tile, counted within its row.
  struct TileStart {
    size_t row;
    int token;
  };

  std::vector<TileStart> cut_tiles(int tile_tokens) const {
    std::vector<TileStart> starts;
    for (size_t row = 0; row < rows_.size(); ++row) {
      for (int token = 0; token < rows_[row].num_tokens; token += tile_tokens) {
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
    const RowView& row = rows_[start.row];
    const mx::array& keys = inputs[1];
    const auto plane = static_cast<size_t>(row.plane_row) *
                           static_cast<size_t>(keys.shape(1)) +
                       static_cast<size_t>(kv_head);
    const size_t plane_bytes = static_cast<size_t>(keys.shape(2)) *
                               static_cast<size_t>(keys.shape(3)) *
                               keys.itemsize();
    tile.keys = keys.data<uint8_t>() + plane * plane_bytes;
    tile.values = inputs[2].data<uint8_t>() + plane * plane_bytes;
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

  std::vector<RowView> rows_;
  int window_;
  float scale_;
  float softcap_;
  bool has_sinks_;
};

[[noreturn]] void fail_view(const std::string& message) {
  throw std::invalid_argument("[attention] " + message);
}

void check_arrays(
    const mx::array& queries,
    const KVView& view,
    const AttentionOptions& options) {
  const bool fits = queries.ndim() == 3 && view.keys.ndim() == 4 &&
                    view.values.shape() == view.keys.shape() &&
                    view.values.dtype() == view.keys.dtype() &&
                    view.keys.shape(1) > 0 &&
                    queries.shape(1) % view.keys.shape(1) == 0 &&
                    queries.shape(2) == view.keys.shape(3) &&
                    queries.shape(2) >= 1 && queries.shape(2) <= 512;
  if (!fits) {
    std::ostringstream message;
    message << "expected queries [T, Hq, D] and planes [B, Hkv, S, D], D <= "
            << "512 and Hq a multiple of Hkv, got " << queries.shape() << ", "
            << view.keys.shape() << " and " << view.values.shape();
    fail_view(message.str());
  }
  float_type(view.keys.dtype());
  if (queries.shape(1) / view.keys.shape(1) > kAttentionPairs) {
    fail_view(
        "more than " + std::to_string(kAttentionPairs) +
        " query heads share a K/V head");
  }
  if (options.sinks && options.sinks->shape() != mx::Shape{queries.shape(1)}) {
    std::ostringstream message;
    message << "expected sinks [" << queries.shape(1) << "], got "
            << options.sinks->shape();
    fail_view(message.str());
  }
}

void check_row(const RowView& row, const mx::array& keys, int window) {
  int columns = 0;
  for (const ColumnRange& range : row.ranges) {
    if (range.size() < 0 ||
        (range.size() > 0 && (range.begin < 0 || range.end > keys.shape(2)))) {
      fail_view(
          "columns [" + std::to_string(range.begin) + ", " +
          std::to_string(range.end) + ") are not within planes of " +
          std::to_string(keys.shape(2)));
    }
    columns += range.size();
  }
  const int end = row.first_position + row.num_tokens;
  const int seen =
      window > 0 ? std::min(end, row.num_tokens + window - 1) : end;
  if (row.num_tokens < 0 || row.first_position < 0 || columns > end ||
      columns < seen) {
    fail_view(
        "a row of " + std::to_string(row.num_tokens) +
        " tokens from position " + std::to_string(row.first_position) +
        " needs " + std::to_string(seen) + " to " + std::to_string(end) +
        " columns, got " + std::to_string(columns));
  }
  if (row.plane_row < 0 || row.plane_row >= keys.shape(0)) {
    fail_view(
        "plane row " + std::to_string(row.plane_row) + " of " +
        std::to_string(keys.shape(0)));
  }
}

void check_rows(const mx::array& queries, const KVView& view) {
  int tokens = 0;
  for (const RowView& row : view.rows) {
    check_row(row, view.keys, view.window);
    if (row.first_token != tokens) {
      fail_view(
          "rows must lie back to back: token " +
          std::to_string(row.first_token) + " where " + std::to_string(tokens) +
          " was expected");
    }
    tokens += row.num_tokens;
  }
  if (tokens != queries.shape(0)) {
    fail_view(
        "the rows have " + std::to_string(tokens) + " tokens, the queries " +
        std::to_string(queries.shape(0)));
  }
}

} // namespace

mx::array attention(
    const mx::array& queries,
    const KVView& view,
    const AttentionOptions& options) {
  check_arrays(queries, view, options);
  check_rows(queries, view);
  if (use_reference()) {
    return attention_reference(queries, view, options);
  }
  std::vector<mx::array> inputs = {
      contiguous_input(queries),
      mx::contiguous(view.keys),
      mx::contiguous(view.values)};
  if (options.sinks) {
    inputs.push_back(contiguous_input(*options.sinks));
  }
  return make_output<AttentionPrimitive>(
      {queries.shape(0), queries.shape(1) * queries.shape(2)},
      std::move(inputs),
      view.rows,
      view.window,
      options);
}

} // namespace sheave::kernels
