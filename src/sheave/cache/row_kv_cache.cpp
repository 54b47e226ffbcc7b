#include "sheave/cache/row_kv_cache.h"

#include <mlx/ops.h>

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "sheave/cache/append_check.h"
#include "sheave/kernels/kv_store/kv_store.h"

namespace sheave {
namespace {

mx::array zero_plane(const PlanesShape& shape, int columns) {
  return mx::zeros(
      {1, shape.num_key_value_heads, columns, shape.head_dim},
      shape.dtype);
}

/// Copies the positions [begin, end) from where they lie in `old` to where
/// they lie in a ring of other columns.
mx::array moved(
    const mx::array& old,
    const RowRing& from,
    const RowRing& to,
    mx::array plane) {
  const auto& shape = old.shape();
  int position = from.oldest;
  while (position < from.offset) {
    // A run of positions that is contiguous in both.
    const int source = position % from.columns;
    const int target = position % to.columns;
    const int run = std::min(
        {from.offset - position, from.columns - source, to.columns - target});
    plane = mx::slice_update(
        plane,
        mx::slice(
            old,
            {0, 0, source, 0},
            {1, shape[1], source + run, shape[3]}),
        mx::Shape{0, 0, target, 0},
        mx::Shape{1, shape[1], target + run, shape[3]});
    position += run;
  }
  return plane;
}

int checked_rows(int num_rows, int window) {
  if (num_rows <= 0 || window < 0) {
    throw std::invalid_argument(
        "[row_kv_cache] expected rows and a window of at least 0, got " +
        std::to_string(num_rows) + " rows and a window of " +
        std::to_string(window));
  }
  return num_rows;
}

} // namespace

RowKVCache::RowKVCache(const PlanesShape& shape, int num_rows, int window)
    : shape_(shape), window_(window) {
  for (int row = 0; row < checked_rows(num_rows, window); ++row) {
    rows_.push_back(
        {.ring = {.window = window},
         .planes = {
             .keys = zero_plane(shape, 0),
             .values = zero_plane(shape, 0)}});
  }
}

void RowKVCache::check(
    const mx::array& keys,
    const mx::array& values,
    const StepLayout& layout) const {
  if (layout.rows.size() != rows_.size()) {
    throw std::invalid_argument(
        "[row_kv_cache] expected " + std::to_string(rows_.size()) +
        " rows, got " + std::to_string(layout.rows.size()));
  }
  int token = 0;
  for (size_t i = 0; i < rows_.size(); ++i) {
    const StepRow& row = layout.rows[i];
    if (row.first_token != token || row.num_tokens < 0 ||
        row.first_position != rows_[i].ring.offset) {
      throw std::invalid_argument(
          "[row_kv_cache] expected row " + std::to_string(i) +
          " to go on at token " + std::to_string(token) + " and position " +
          std::to_string(rows_[i].ring.offset) + ", got token " +
          std::to_string(row.first_token) + " and position " +
          std::to_string(row.first_position));
    }
    token += row.num_tokens;
  }
  check_packed("row_kv_cache", shape_, token, keys, values);
}

// Gives a row's planes `columns` columns; each position moves to its place
// among them.
void RowKVCache::make_room(Row& row, int columns) const {
  RowRing grown = row.ring;
  grown.columns = columns;
  grown.oldest = row.ring.first_seen(row.ring.offset);
  RowRing from = row.ring;
  from.oldest = grown.oldest;
  row.planes.keys =
      moved(row.planes.keys, from, grown, zero_plane(shape_, columns));
  row.planes.values =
      moved(row.planes.values, from, grown, zero_plane(shape_, columns));
  row.ring.columns = columns;
  row.ring.oldest = std::max(row.ring.oldest, grown.oldest);
}

kernels::KVView RowKVCache::append(
    const mx::array& keys,
    const mx::array& values,
    const StepLayout& layout) {
  check(keys, values, layout);
  kernels::KVView view = {.planes = {}, .rows = {}, .window = window_};
  std::vector<kernels::KVPlanes> planes;
  std::vector<kernels::KVWrite> writes;
  for (size_t i = 0; i < rows_.size(); ++i) {
    Row& row = rows_[i];
    const StepRow& step = layout.rows[i];
    const int begin = row.ring.offset;
    const int end = begin + step.num_tokens;
    const int columns = row.ring.columns_for(step.num_tokens);
    if (columns > row.ring.columns) {
      make_room(row, columns);
    }
    int token = step.first_token;
    for (const kernels::ColumnRange& range : row.ring.ranges(begin, end)) {
      if (range.size() > 0) {
        writes.push_back(
            {.planes = static_cast<int>(i),
             .plane_row = 0,
             .first_token = token,
             .num_tokens = range.size(),
             .column = range.begin});
        token += range.size();
      }
    }
    if (step.num_tokens > 0) {
      view.rows.push_back(
          {.planes = static_cast<int>(i),
           .plane_row = 0,
           .first_token = step.first_token,
           .num_tokens = step.num_tokens,
           .first_position = begin,
           .ranges = row.ring.ranges(row.ring.first_seen(begin), end)});
    }
    row.ring.advance(step.num_tokens);
    planes.push_back(std::move(row.planes));
  }
  view.planes = kernels::store_kv(std::move(planes), keys, values, writes);
  for (size_t i = 0; i < rows_.size(); ++i) {
    rows_[i].planes = view.planes[i];
  }
  return view;
}

int RowKVCache::offset(int row) const {
  if (row < 0 || row >= static_cast<int>(rows_.size())) {
    throw std::invalid_argument(
        "[row_kv_cache] expected a row below " + std::to_string(rows_.size()) +
        ", got " + std::to_string(row));
  }
  return rows_[static_cast<size_t>(row)].ring.offset;
}

bool RowKVCache::trimmable() const {
  return std::all_of(rows_.begin(), rows_.end(), [](const Row& row) {
    return row.ring.complete();
  });
}

int RowKVCache::trim(int n) {
  if (n < 0 || !trimmable()) {
    throw std::invalid_argument(
        "[row_kv_cache] cannot trim " + std::to_string(n) + " tokens" +
        (n < 0 ? "" : " of a ring that has wrapped"));
  }
  for (const Row& row : rows_) {
    n = std::min(n, row.ring.offset);
  }
  for (Row& row : rows_) {
    row.ring.offset -= n;
  }
  return n;
}

size_t RowKVCache::nbytes() const {
  return std::accumulate(
      rows_.begin(),
      rows_.end(),
      size_t{0},
      [&](size_t sum, const Row& row) {
        return sum + planes_bytes(shape_, row.ring.columns);
      });
}

size_t RowKVCache::projected_bytes(int tokens) const {
  RowRing ring = {.window = window_};
  const int stored = window_ > 0 ? std::min(tokens, window_) : tokens;
  return rows_.size() * planes_bytes(shape_, ring.columns_for(stored));
}

std::string RowKVCache::signature() const {
  const std::string layout =
      window_ > 0 ? "rotating window=" + std::to_string(window_) : "full";
  return layout + " plain " + dtype_name(shape_.dtype);
}

std::unique_ptr<Cache>
make_row_kv_cache(const PlanesShape& shape, int num_rows, int window) {
  return std::make_unique<RowKVCache>(shape, num_rows, window);
}

} // namespace sheave
