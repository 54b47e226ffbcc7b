// OptionalInput: an input that a primitive may lack. Internal to the kernels
// room.
#pragma once

#include <optional>
#include <vector>

#include "sheave/kernels/cpu_primitive.h"
#include "sheave/kernels/quantized_linear/quantized_linear.h"

namespace sheave::kernels {

/// An optional input: its place among the inputs, or none.
struct OptionalInput {
  OptionalInput(
      const std::optional<mx::array>& array,
      std::vector<mx::array>& inputs) {
    if (array) {
      index = static_cast<int>(inputs.size());
      inputs.push_back(contiguous_input(*array));
    }
  }

  const float* data(const std::vector<mx::array>& inputs) const {
    return index < 0 ? nullptr
                     : inputs[static_cast<size_t>(index)].data<float>();
  }

  int index = -1;
};

inline std::optional<mx::array> weight_of(const std::optional<NormWeight>& norm) {
  return norm ? std::optional(norm->weight) : std::nullopt;
}

inline float eps_of(const std::optional<NormWeight>& norm) {
  return norm ? norm->eps : 0;
}

} // namespace sheave::kernels
