#include "sheave/nn/rms_norm.h"

#include <utility>

#include "sheave/kernels/rms_norm/rms_norm.h"

namespace sheave {

RMSNorm::RMSNorm(mx::array weight, float eps)
    : weight_{.weight = std::move(weight), .eps = eps} {
  weight_.weight.eval();
}

mx::array RMSNorm::operator()(const mx::array& x) const {
  return kernels::rms_norm(x, weight_.weight, weight_.eps);
}

} // namespace sheave
