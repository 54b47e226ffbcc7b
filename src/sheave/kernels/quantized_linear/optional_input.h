// OptionalInput: an input that a primitive may lack. Internal to the kernels
// room.
#pragma once

#include <optional>
#include <vector>

#include "sheave/kernels/cpu_primitive.h"
#include "sheave/kernels/quantized_linear/quantized_linear.h"

namespace sheave::kernels {

/// An array that is known when the graph is built, as weights are, is kept by
/// the primitive: MLX's bookkeeping for an input costs more than a small
/// kernel. Others are inputs.
class OptionalInput {
 public:
  OptionalInput(
      const std::optional<mx::array>& array,
      std::vector<mx::array>& inputs) {
    if (!array) {
      return;
    }
    const mx::array floats = contiguous_input(*array);
    if (floats.is_available()) {
      known_ = floats;
    } else {
      index_ = static_cast<int>(inputs.size());
      inputs.push_back(floats);
    }
  }

  bool present() const {
    return known_ || index_ >= 0;
  }

  /// Null if not present.
  const float* data(const std::vector<mx::array>& inputs) const {
    if (known_) {
      return known_->data<float>();
    }
    return index_ < 0 ? nullptr
                      : inputs[static_cast<size_t>(index_)].data<float>();
  }

 private:
  std::optional<mx::array> known_;
  int index_ = -1;
};

inline std::optional<mx::array> weight_of(
    const std::optional<NormWeight>& norm) {
  return norm ? std::optional(norm->weight) : std::nullopt;
}

inline float eps_of(const std::optional<NormWeight>& norm) {
  return norm ? norm->eps : 0;
}

} // namespace sheave::kernels
