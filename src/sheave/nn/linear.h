// Linear and Embedding: a stored matrix as a layer. Float, quantized or packed
// for the integer kernels makes no difference to the caller.
#pragma once

#include <mlx/array.h>

#include <optional>
#include <variant>

#include "sheave/kernels/packed_weight.h"
#include "sheave/kernels/weight.h"
#include "sheave/nn/rms_norm.h"

namespace sheave {

namespace mx = mlx::core;

/// A matrix as its file stores it, multiplied in float32, or packed.
using LinearWeight = std::variant<kernels::Weight, kernels::PackedWeight>;

/// What goes with a product: a norm of its input, a norm of its output, a
/// residual that is added last. Null for none; float32.
struct LinearFusion {
  const RMSNorm* norm = nullptr;
  const RMSNorm* output_norm = nullptr;
  const mx::array* residual = nullptr;
};

/// y = x W^T + b.
class Linear {
 public:
  /// bias: [out_features] float32.
  explicit Linear(
      LinearWeight weight,
      std::optional<mx::array> bias = std::nullopt);

  /// x: [T, in_features] float32. Returns [T, out_features] float32, one
  /// operation where the weight is packed.
  mx::array operator()(const mx::array& x, const LinearFusion& fusion = {})
      const;

  /// The weight if it is packed, else null.
  const kernels::PackedWeight* packed() const {
    return std::get_if<kernels::PackedWeight>(&weight_);
  }
  const std::optional<mx::array>& bias() const {
    return bias_;
  }

 private:
  LinearWeight weight_;
  std::optional<mx::array> bias_;
};

/// Token embedding whose table may serve as the output head too.
class Embedding {
 public:
  /// head: the same matrix packed, if it is; as_linear() uses it.
  explicit Embedding(
      kernels::Weight table,
      std::optional<kernels::PackedWeight> head = std::nullopt);

  /// ids: [T] int32 within the table. Returns [T, hidden_size] float32.
  mx::array operator()(const mx::array& ids) const;

  /// The tied head. x: [T, hidden_size]. Returns logits [T, V] float32.
  mx::array as_linear(const mx::array& x) const {
    return head_(x);
  }

 private:
  kernels::Weight table_;
  Linear head_;
};

} // namespace sheave
