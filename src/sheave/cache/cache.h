// Cache: the port through which models reach what a layer remembers of a
// conversation. One implementation per layout; a single conversation is the
// batch of one row, which is all that the aligned layouts hold so far.
#pragma once

#include <mlx/array.h>

#include <cstddef>
#include <memory>
#include <string>

#include "sheave/cache/plain_planes.h"
#include "sheave/cache/step_layout.h"
#include "sheave/kernels/attention/attention.h"

namespace sheave {

/// One layer's memory. Calls that throw leave it as it was.
class Cache {
 public:
  virtual ~Cache() = default;

  /// Stores the step's new tokens and returns what attention may read.
  /// keys, values: [T, Hkv, D], the packed tokens of `layout`, already rotated
  /// by RoPE; stored in the cache's dtype. The view lies over the cache's own
  /// planes: valid until the next call, and let go of before it, or that call
  /// has to copy them.
  /// Throws std::invalid_argument if the shapes, the row count or a row's
  /// first position aren't what this cache expects next.
  virtual kernels::KVView append(
      const mx::array& keys,
      const mx::array& values,
      const StepLayout& layout) = 0;

  /// Absolute position of the next token of row `row`.
  virtual int offset(int row) const = 0;

  /// Whether trim() can forget the newest tokens: nothing has been lost yet.
  virtual bool trimmable() const = 0;

  /// Forgets the newest n tokens of every row; returns how many it forgot.
  /// Throws std::invalid_argument while not trimmable.
  virtual int trim(int n) = 0;

  /// Bytes of the planes as allocated now.
  virtual size_t nbytes() const = 0;

  /// Bytes of the planes once `tokens` tokens are stored.
  virtual size_t projected_bytes(int tokens) const = 0;

  /// Layout and storage in words, e.g. "rotating window=512 plain float16".
  virtual std::string signature() const = 0;
};

/// A full-attention cache of one row.
std::unique_ptr<Cache> make_kv_cache(const PlanesShape& shape);

/// A sliding-window cache of one row that keeps the last `max_size` positions.
/// Throws std::invalid_argument unless max_size > 0.
std::unique_ptr<Cache> make_rotating_kv_cache(
    const PlanesShape& shape,
    int max_size);

/// A cache of rows with planes of their own, for our own kernels: full
/// attention where window is 0, else sliding-window attention.
/// Throws std::invalid_argument unless num_rows > 0 and window >= 0.
std::unique_ptr<Cache>
make_row_kv_cache(const PlanesShape& shape, int num_rows, int window);

} // namespace sheave
