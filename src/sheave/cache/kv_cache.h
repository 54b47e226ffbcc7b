// KVCache: full attention. Columns are positions; the buffer grows in steps
// and nothing is ever dropped.
#pragma once

#include "sheave/cache/cache.h"

namespace sheave {

/// See Cache. One row.
class KVCache : public Cache {
 public:
  /// Columns are allocated in steps of this many.
  static constexpr int kStep = 256;

  explicit KVCache(const PlanesShape& shape);

  kernels::KVView append(
      const mx::array& keys,
      const mx::array& values,
      const StepLayout& layout) override;
  int offset(int row) const override;
  bool trimmable() const override {
    return true;
  }
  int trim(int n) override;
  size_t nbytes() const override {
    return planes_.nbytes();
  }
  size_t projected_bytes(int tokens) const override;
  std::string signature() const override;

 private:
  PlanesShape shape_;
  PlainPlanes planes_;
  int offset_ = 0;
};

} // namespace sheave
