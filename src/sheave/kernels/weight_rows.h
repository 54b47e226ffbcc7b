// From a Weight's arrays to what raw kernels read. Internal to the kernels
// room.
#pragma once

#include <mlx/array.h>

#include <vector>

#include "sheave/kernels/kernel_table.h"
#include "sheave/kernels/weight.h"

namespace sheave::kernels {

/// A Weight without its arrays, which travel as a primitive's inputs.
struct WeightSpec {
  explicit WeightSpec(const Weight& weight);

  /// The rows, from a primitive's inputs of which `first` is the weight's
  /// data, followed by scales and biases for kAffine.
  WeightRows rows(const std::vector<mx::array>& inputs, size_t first) const;

  WeightFormat format;
  int in_features;
  int bits;
  int group_size;
};

/// Appends the weight's arrays in the order that WeightSpec::rows expects.
void append_arrays(const Weight& weight, std::vector<mx::array>& inputs);

/// The kernels' name of a float dtype. Throws std::invalid_argument for
/// others.
FloatType float_type(mx::Dtype dtype);

} // namespace sheave::kernels
