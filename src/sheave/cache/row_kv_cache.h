// RowKVCache: every row owns its planes, and position p lies in column p mod
// capacity; full attention is the ring that never wraps. Nothing is ever moved
// but for growth, and rows of any lengths share a step. For our own kernels,
// which read such rows in place; elsewhere see KVCache and RotatingKVCache.
#pragma once

#include <vector>

#include "sheave/cache/cache.h"
#include "sheave/cache/row_ring.h"

namespace sheave {

/// See Cache. window: how many positions a token sees, itself included; 0 for
/// all. A row of a sliding layer takes window + block columns at most, rounded
/// up to kStep, block being the most tokens it got in one step.
class RowKVCache : public Cache {
 public:
  /// Throws std::invalid_argument unless num_rows > 0 and window >= 0.
  RowKVCache(const PlanesShape& shape, int num_rows, int window);

  kernels::KVView append(
      const mx::array& keys,
      const mx::array& values,
      const StepLayout& layout) override;
  int offset(int row) const override;
  bool trimmable() const override;
  int trim(int n) override;
  size_t nbytes() const override;
  size_t projected_bytes(int tokens) const override;
  std::string signature() const override;

 private:
  struct Row {
    RowRing ring;
    kernels::KVPlanes planes;
  };

  void check(
      const mx::array& keys,
      const mx::array& values,
      const StepLayout& layout) const;
  void make_room(Row& row, int columns) const;

  PlanesShape shape_;
  int window_;
  std::vector<Row> rows_;
};

} // namespace sheave
