#include "sheave/nn/rope.h"

#include "sheave/kernels/rope/rope.h"

namespace sheave {

Rope::Rope(const RopeFrequencies& frequencies)
    : inv_freq_(
          frequencies.inv_freq.begin(),
          {static_cast<int>(frequencies.inv_freq.size())}),
      attention_factor_(frequencies.attention_factor),
      traditional_(frequencies.traditional) {}

mx::array Rope::operator()(const mx::array& x, const mx::array& positions)
    const {
  return kernels::rope(
      x,
      positions,
      inv_freq_,
      {.traditional = traditional_, .attention_factor = attention_factor_});
}

} // namespace sheave
