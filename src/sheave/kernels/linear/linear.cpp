#include "sheave/kernels/linear/linear.h"

#include <algorithm>
#include <cstring>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "sheave/kernels/cpu_primitive.h"
#include "sheave/kernels/runtime.h"
#include "sheave/kernels/weight_rows.h"

namespace sheave::kernels {
namespace {

/// Rows of a weight per task.
constexpr int kTaskRows = 32;

int task_count(int rows) {
  return (rows + kTaskRows - 1) / kTaskRows;
}

/// Inputs: x, the weight's arrays, the bias if there is one.
class LinearPrimitive : public CpuFloatPrimitive {
 public:
  LinearPrimitive(const Weight& weight, bool has_bias)
      : weight_(weight),
        out_features_(weight.out_features),
        has_bias_(has_bias) {}

  DEFINE_NAME(SheaveLinear)

 protected:
  ScratchSize scratch_size(
      const std::vector<mx::array>& inputs) const override {
    const auto width = static_cast<size_t>(padded(weight_.in_features));
    return {
        .shared = static_cast<size_t>(inputs[0].shape(0)) * width,
        .per_worker = kLinearRows * width};
  }

  void run(
      const std::vector<mx::array>& inputs,
      float* output,
      const Scratch& scratch) const override {
    const int m = inputs[0].shape(0);
    copy_rows(inputs[0].data<float>(), m, scratch.shared);
    LinearTask task = {
        .x = scratch.shared,
        .m = m,
        .weight = weight_.rows(inputs, 1),
        .bias = has_bias_ ? inputs.back().data<float>() : nullptr,
        .out = output,
        .n = out_features_,
        .n_begin = 0,
        .n_end = 0,
        .scratch = nullptr};
    thread_pool().run(task_count(out_features_), [&](int index, int worker) {
      LinearTask part = task;
      part.n_begin = index * kTaskRows;
      part.n_end = std::min(out_features_, part.n_begin + kTaskRows);
      part.scratch = scratch.worker(worker);
      kernel_table().linear(part);
    });
  }

 private:
  /// Rows of x, aligned and padded with zeros to whole lanes.
  void copy_rows(const float* x, int rows, float* to) const {
    const auto k = static_cast<size_t>(weight_.in_features);
    const auto width = static_cast<size_t>(padded(weight_.in_features));
    for (int row = 0; row < rows; ++row) {
      std::memcpy(to, x, k * sizeof(float));
      std::fill(to + k, to + width, 0.0F);
      x += k;
      to += width;
    }
  }

  WeightSpec weight_;
  int out_features_;
  bool has_bias_;
};

/// Inputs: the weight's arrays.
class DequantizePrimitive : public CpuFloatPrimitive {
 public:
  explicit DequantizePrimitive(const Weight& weight)
      : weight_(weight), out_features_(weight.out_features) {}

  DEFINE_NAME(SheaveDequantize)

 protected:
  void run(
      const std::vector<mx::array>& inputs,
      float* output,
      const Scratch& /*scratch*/) const override {
    const WeightRows rows = weight_.rows(inputs, 0);
    thread_pool().run(task_count(out_features_), [&](int index, int) {
      const int end = std::min(out_features_, (index + 1) * kTaskRows);
      for (int row = index * kTaskRows; row < end; ++row) {
        decoding_table().decode_row(
            rows,
            row,
            output + static_cast<size_t>(row) *
                         static_cast<size_t>(rows.in_features));
      }
    });
  }

 private:
  WeightSpec weight_;
  int out_features_;
};

/// What MLX's own quantized matmul takes.
bool mlx_multiplies(const Weight& weight) {
  const int group = weight.group_size;
  return weight.format == WeightFormat::kAffine &&
         (group == 32 || group == 64 || group == 128);
}

mx::array linear_reference(
    const mx::array& x,
    const Weight& weight,
    const std::optional<mx::array>& bias) {
  const mx::array input = mx::astype(x, mx::float32);
  const mx::array product =
      mlx_multiplies(weight)
          ? mx::quantized_matmul(
                input,
                weight.data,
                mx::astype(*weight.scales, mx::float32),
                mx::astype(*weight.biases, mx::float32),
                true,
                weight.group_size,
                weight.bits)
          : mx::matmul(input, mx::transpose(dequantize(weight)));
  return bias ? mx::add(product, *bias) : product;
}

} // namespace

mx::array linear(
    const mx::array& x,
    const Weight& weight,
    const std::optional<mx::array>& bias) {
  check_weight("linear", weight);
  if (x.ndim() != 2 || x.shape(1) != weight.in_features) {
    std::ostringstream message;
    message << "[linear] expected x [T, " << weight.in_features << "], got "
            << x.shape();
    throw std::invalid_argument(message.str());
  }
  if (bias && bias->shape() != mx::Shape{weight.out_features}) {
    std::ostringstream message;
    message << "[linear] expected bias [" << weight.out_features << "], got "
            << bias->shape();
    throw std::invalid_argument(message.str());
  }
  if (use_reference()) {
    return linear_reference(x, weight, bias);
  }
  std::vector<mx::array> inputs = {contiguous_input(x)};
  append_arrays(weight, inputs);
  if (bias) {
    inputs.push_back(contiguous_input(*bias));
  }
  return make_output<LinearPrimitive>(
      {x.shape(0), weight.out_features},
      std::move(inputs),
      weight,
      bias.has_value());
}

mx::array dequantize(const Weight& weight) {
  check_weight("dequantize", weight);
  std::vector<mx::array> inputs;
  append_arrays(weight, inputs);
  return make_output<DequantizePrimitive>(
      {weight.out_features, weight.in_features},
      std::move(inputs),
      weight);
}

} // namespace sheave::kernels
