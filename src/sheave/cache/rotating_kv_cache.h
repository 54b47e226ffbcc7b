// RotatingKVCache: sliding-window attention. The planes are a ring of at most
// max_size columns; a block of tokens is appended in temporal order instead,
// and the next single token cuts the buffer back to the window.
#pragma once

#include "sheave/cache/cache.h"
#include "sheave/cache/rotating_state.h"

namespace sheave {

/// See Cache. One row; memory is bounded by max_size + the largest block.
class RotatingKVCache : public Cache {
 public:
  RotatingKVCache(const PlanesShape& shape, int max_size);

  kernels::KVView append(
      const mx::array& keys,
      const mx::array& values,
      const StepLayout& layout) override;
  int offset(int row) const override;
  bool trimmable() const override {
    return state_.trimmable();
  }
  int trim(int n) override {
    return state_.trim(n);
  }
  size_t nbytes() const override {
    return planes_.nbytes();
  }
  size_t projected_bytes(int tokens) const override;
  std::string signature() const override;

  /// Where the tokens lie.
  const RotatingState& state() const {
    return state_;
  }

 private:
  void append_token(const mx::array& keys, const mx::array& values);
  void append_block(const mx::array& keys, const mx::array& values);

  PlanesShape shape_;
  PlainPlanes planes_;
  RotatingState state_;
};

} // namespace sheave
