#include "sheave/nn/rope.h"

namespace sheave {

Rope::Rope(const RopeFrequencies& frequencies)
    : inv_freq_(
          frequencies.inv_freq.begin(),
          {static_cast<int>(frequencies.inv_freq.size())}),
      attention_factor_(frequencies.attention_factor),
      pairs_(
          frequencies.traditional ? kernels::RopePairs::kTraditional
                                  : kernels::RopePairs::kHalves) {}

mx::array Rope::table(const mx::array& positions) const {
  return kernels::rope_table(positions, inv_freq_, attention_factor_);
}

mx::array Rope::operator()(const mx::array& x, const mx::array& table) const {
  return kernels::rope(x, table, pairs_);
}

} // namespace sheave
