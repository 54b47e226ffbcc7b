// Linear and Embedding: a stored matrix as a layer. Float or quantized makes
// no difference to the caller.
#pragma once

#include <mlx/array.h>

#include <optional>

#include "sheave/kernels/weight.h"

namespace sheave {

namespace mx = mlx::core;

/// y = x W^T + b.
class Linear {
 public:
  /// bias: [out_features] float32.
  explicit Linear(
      kernels::Weight weight,
      std::optional<mx::array> bias = std::nullopt);

  /// x: [T, in_features] float32. Returns [T, out_features] float32.
  mx::array operator()(const mx::array& x) const;

 private:
  kernels::Weight weight_;
  std::optional<mx::array> bias_;
};

/// Token embedding whose table may serve as the output head too.
class Embedding {
 public:
  explicit Embedding(kernels::Weight table);

  /// ids: [T] int32 within the table. Returns [T, hidden_size] float32.
  mx::array operator()(const mx::array& ids) const;

  /// The tied head. x: [T, hidden_size]. Returns logits [T, V] float32.
  mx::array as_linear(const mx::array& x) const;

 private:
  kernels::Weight table_;
};

} // namespace sheave
