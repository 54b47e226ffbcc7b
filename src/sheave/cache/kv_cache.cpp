#include "sheave/cache/kv_cache.h"

#include <algorithm>
#include <stdexcept>

#include "sheave/cache/append_check.h"

namespace sheave {
namespace {

int round_up(int n, int step) {
  return (n + step - 1) / step * step;
}

} // namespace

KVCache::KVCache(const PlanesShape& shape) : shape_(shape), planes_(shape, 1) {}

kernels::KVView KVCache::append(
    const mx::array& keys,
    const mx::array& values,
    const StepLayout& layout) {
  check_append("kv_cache", shape_, offset_, layout, keys, values);
  const int tokens = layout.num_tokens();
  const int end = offset_ + tokens;
  if (end > planes_.columns()) {
    planes_.grow(round_up(end - planes_.columns(), kStep));
  }
  planes_.write(offset_, as_block(keys), as_block(values));
  const int first_position = offset_;
  offset_ = end;
  return {
      .planes = {{.keys = planes_.keys(), .values = planes_.values()}},
      .rows =
          {{.plane_row = 0,
            .first_token = 0,
            .num_tokens = tokens,
            .first_position = first_position,
            .ranges = {{{0, end}, {end, end}}}}},
      .window = 0};
}

int KVCache::offset(int row) const {
  if (row != 0) {
    throw std::invalid_argument(
        "[kv_cache] expected row 0, got " + std::to_string(row));
  }
  return offset_;
}

int KVCache::trim(int n) {
  if (n < 0) {
    throw std::invalid_argument(
        "[kv_cache] cannot trim " + std::to_string(n) + " tokens");
  }
  n = std::min(n, offset_);
  offset_ -= n;
  return n;
}

size_t KVCache::projected_bytes(int tokens) const {
  return planes_bytes(shape_, round_up(tokens, kStep));
}

std::string KVCache::signature() const {
  return "full plain " + dtype_name(shape_.dtype);
}

std::unique_ptr<Cache> make_kv_cache(const PlanesShape& shape) {
  return std::make_unique<KVCache>(shape);
}

} // namespace sheave
