#include "sheave/nn/rms_norm.h"

#include <utility>

#include "sheave/kernels/rms_norm/rms_norm.h"

namespace sheave {

RMSNorm::RMSNorm(mx::array weight, float eps)
    : weight_(std::move(weight)), eps_(eps) {}

mx::array RMSNorm::operator()(const mx::array& x) const {
  return kernels::rms_norm(x, weight_, eps_);
}

} // namespace sheave
