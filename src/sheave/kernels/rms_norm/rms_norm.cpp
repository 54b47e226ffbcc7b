#include "sheave/kernels/rms_norm/rms_norm.h"

#include <mlx/fast.h>

#include <algorithm>
#include <sstream>
#include <stdexcept>
#include <vector>

#include "sheave/kernels/cpu_primitive.h"
#include "sheave/kernels/runtime.h"

namespace sheave::kernels {
namespace {

/// Rows per task.
constexpr int kTaskRows = 8;

/// Inputs: x, weight.
class RmsNormPrimitive : public CpuFloatPrimitive {
 public:
  explicit RmsNormPrimitive(float eps) : eps_(eps) {}

  DEFINE_NAME(SheaveRmsNorm)

 protected:
  void run(
      const std::vector<mx::array>& inputs,
      float* output,
      const Scratch& /*scratch*/) const override {
    const float* x = inputs[0].data<float>();
    const float* weight = inputs[1].data<float>();
    const int dims = inputs[0].shape(-1);
    const int rows = static_cast<int>(inputs[0].size()) / dims;
    thread_pool().run((rows + kTaskRows - 1) / kTaskRows, [&](int task, int) {
      const int end = std::min(rows, (task + 1) * kTaskRows);
      for (int row = task * kTaskRows; row < end; ++row) {
        const size_t at = static_cast<size_t>(row) * static_cast<size_t>(dims);
        kernel_table().rms_norm(x + at, weight, eps_, dims, output + at);
      }
    });
  }

 private:
  float eps_;
};

} // namespace

mx::array rms_norm(const mx::array& x, const mx::array& weight, float eps) {
  if (x.ndim() < 1 || x.shape(-1) == 0 ||
      weight.shape() != mx::Shape{x.shape(-1)}) {
    std::ostringstream message;
    message << "[rms_norm] expected x [..., D] and weight [D], got "
            << x.shape() << " and " << weight.shape();
    throw std::invalid_argument(message.str());
  }
  if (use_reference()) {
    return mx::fast::rms_norm(mx::astype(x, mx::float32), weight, eps);
  }
  return make_output<RmsNormPrimitive>(
      x.shape(),
      {contiguous_input(x), contiguous_input(weight)},
      eps);
}

} // namespace sheave::kernels
