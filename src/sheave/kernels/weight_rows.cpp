#include "sheave/kernels/weight_rows.h"

#include <mlx/ops.h>

#include <sstream>
#include <stdexcept>
#include <string>

#include "sheave/kernels/cpu_primitive.h"
#include "sheave/kernels/linear/linear.h"

namespace sheave::kernels {
namespace {

[[noreturn]] void fail_check(const char* op, const std::string& message) {
  throw std::invalid_argument(std::string("[") + op + "] " + message);
}

void check_shape(
    const char* op,
    const char* what,
    const mx::array& array,
    const mx::Shape& expected) {
  if (array.shape() != expected) {
    std::ostringstream message;
    message << "expected " << what << " " << expected << ", got "
            << array.shape();
    fail_check(op, message.str());
  }
}

void check_affine(const char* op, const Weight& weight) {
  const int bits = weight.bits;
  const int group = weight.group_size;
  const bool known_bits = bits >= 2 && bits <= 8 && bits != 7;
  if (!known_bits || group <= 0 || group % 8 != 0 ||
      weight.in_features % group != 0 || !weight.scales || !weight.biases) {
    fail_check(
        op,
        "an affine weight of " + std::to_string(bits) + " bits in groups of " +
            std::to_string(group) + " over " +
            std::to_string(weight.in_features) +
            " features, or without scales or biases, is not supported");
  }
  const int words = weight.in_features * bits / 32;
  check_shape(op, "weight", weight.data, {weight.out_features, words});
  const mx::Shape groups = {weight.out_features, weight.in_features / group};
  check_shape(op, "scales", *weight.scales, groups);
  check_shape(op, "biases", *weight.biases, groups);
  if (weight.scales->dtype() != weight.biases->dtype()) {
    fail_check(op, "scales and biases differ in dtype");
  }
  float_type(weight.scales->dtype());
}

mx::Dtype stored_dtype(WeightFormat format) {
  switch (format) {
    case WeightFormat::kF32:
      return mx::float32;
    case WeightFormat::kF16:
      return mx::float16;
    case WeightFormat::kBF16:
      return mx::bfloat16;
    case WeightFormat::kAffine:
      return mx::uint32;
    default:
      return mx::uint8;
  }
}

} // namespace

void check_weight(const char* op, const Weight& weight) {
  if (weight.out_features <= 0 || weight.in_features <= 0) {
    fail_check(op, "a weight without rows or columns");
  }
  if (weight.data.dtype() != stored_dtype(weight.format)) {
    std::ostringstream message;
    message << weight_format_name(weight.format) << " data can't be "
            << weight.data.dtype();
    fail_check(op, message.str());
  }
  if (weight.format == WeightFormat::kAffine) {
    check_affine(op, weight);
    return;
  }
  const BlockLayout layout = block_layout(weight.format);
  if (weight.in_features % layout.elements != 0) {
    fail_check(
        op,
        std::to_string(weight.in_features) + " features are not whole " +
            weight_format_name(weight.format) + " blocks of " +
            std::to_string(layout.elements));
  }
  const bool blocks = layout.elements > 1;
  const int columns = blocks
                          ? weight.in_features / layout.elements * layout.bytes
                          : weight.in_features;
  check_shape(op, "weight", weight.data, {weight.out_features, columns});
}

WeightSpec::WeightSpec(const Weight& weight)
    : format(weight.format),
      in_features(weight.in_features),
      bits(weight.bits),
      group_size(weight.group_size) {}

WeightRows WeightSpec::rows(const std::vector<mx::array>& inputs, size_t first)
    const {
  const mx::array& data = inputs[first];
  WeightRows rows = {
      .format = format,
      .data = data.data<uint8_t>(),
      .row_bytes = data.nbytes() / static_cast<size_t>(data.shape(0)),
      .in_features = in_features,
      .bits = bits,
      .group_size = group_size,
      .scale_type = FloatType::kF32,
      .scales = nullptr,
      .biases = nullptr};
  if (format == WeightFormat::kAffine) {
    rows.scale_type = float_type(inputs[first + 1].dtype());
    rows.scales = inputs[first + 1].data<uint8_t>();
    rows.biases = inputs[first + 2].data<uint8_t>();
  }
  return rows;
}

void append_arrays(const Weight& weight, std::vector<mx::array>& inputs) {
  inputs.push_back(contiguous_stored(weight.data));
  if (weight.format == WeightFormat::kAffine) {
    inputs.push_back(contiguous_stored(*weight.scales));
    inputs.push_back(contiguous_stored(*weight.biases));
  }
}

FloatType float_type(mx::Dtype dtype) {
  if (dtype == mx::float32) {
    return FloatType::kF32;
  }
  if (dtype == mx::float16) {
    return FloatType::kF16;
  }
  if (dtype == mx::bfloat16) {
    return FloatType::kBF16;
  }
  std::ostringstream message;
  message << "[kernels] expected a float dtype, got " << dtype;
  throw std::invalid_argument(message.str());
}

} // namespace sheave::kernels
