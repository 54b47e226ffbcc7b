#include "sheave/weights/checkpoint.h"

#include <mlx/ops.h>
#include <mlx/transforms.h>

#include <algorithm>
#include <span>
#include <utility>

#include "sheave/base/file_error.h"
#include "sheave/weights/finite.h"
#include "sheave/weights/mapped_array.h"

namespace sheave {
namespace {

using kernels::WeightFormat;

/// The formats that tensors can be computed in, by the files' type names.
std::optional<WeightFormat> weight_format(std::string_view type) {
  for (const WeightFormat format :
       {WeightFormat::kF32,
        WeightFormat::kF16,
        WeightFormat::kBF16,
        WeightFormat::kQ4_0,
        WeightFormat::kQ4_1,
        WeightFormat::kQ5_0,
        WeightFormat::kQ5_1,
        WeightFormat::kQ8_0,
        WeightFormat::kQ4_K,
        WeightFormat::kQ5_K,
        WeightFormat::kQ6_K}) {
    if (type == kernels::weight_format_name(format)) {
      return format;
    }
  }
  return std::nullopt;
}

constexpr const char* kWeightTypes =
    "F32 F16 BF16 Q4_0 Q4_1 Q5_0 Q5_1 Q8_0 Q4_K Q5_K Q6_K";

/// The dtype of a plain float type.
std::optional<mx::Dtype> float_dtype(std::string_view type) {
  if (type == "F32") {
    return mx::float32;
  }
  if (type == "F16") {
    return mx::float16;
  }
  if (type == "BF16") {
    return mx::bfloat16;
  }
  return std::nullopt;
}

std::span<const uint8_t> bytes_of(const CheckpointTensor& tensor) {
  return tensor.file->bytes().subspan(tensor.info.offset, tensor.info.bytes);
}

} // namespace

Checkpoint Checkpoint::open(
    const std::filesystem::path& path,
    LoadProgress progress) {
  Checkpoint checkpoint;
  checkpoint.path_ = path;
  checkpoint.progress_ = std::move(progress);
  checkpoint.files_ = open_checkpoint_files(path);
  checkpoint.index_tensors();
  return checkpoint;
}

void Checkpoint::index_tensors() {
  for (size_t i = 0; i < tensors().size(); ++i) {
    const CheckpointTensor& tensor = tensors()[i];
    total_bytes_ += tensor.info.bytes;
    const auto [at, is_new] = by_name_.emplace(tensor.canonical_name, i);
    if (!is_new) {
      fail(
          tensor,
          "stands for " + printable(tensor.canonical_name) + " as does " +
              printable(tensors()[at->second].info.name) +
              ", expected one of them");
    }
  }
}

void Checkpoint::fail(const CheckpointTensor& tensor, const std::string& what)
    const {
  throw FileError(
      tensor.file->path().string() + ": tensor " + printable(tensor.info.name) +
      " " + what);
}

const CheckpointTensor& Checkpoint::find(const std::string& name) const {
  const auto found = by_name_.find(name);
  if (found == by_name_.end()) {
    throw FileError(
        path_.string() + ": tensor " + name + " is missing, expected it");
  }
  return tensors()[found->second];
}

void Checkpoint::check_shape(
    const CheckpointTensor& tensor,
    const std::vector<int64_t>& expected) const {
  if (tensor.info.shape != expected) {
    fail(
        tensor,
        "is " + shape_text(tensor.info.shape) + ", expected " +
            shape_text(expected));
  }
}

void Checkpoint::check_finite(const CheckpointTensor& tensor) const {
  const auto at = first_non_finite(tensor.info.type, bytes_of(tensor));
  if (at) {
    const bool blocks = !float_dtype(tensor.info.type);
    fail(
        tensor,
        std::string("holds a NaN or infinity in ") +
            (blocks ? "the scales of block " : "element ") +
            std::to_string(*at) + ", expected finite numbers");
  }
}

void Checkpoint::count(const CheckpointTensor& tensor) const {
  done_bytes_ += tensor.info.bytes;
  if (progress_) {
    progress_(std::min(done_bytes_, total_bytes_), total_bytes_);
  }
}

void Checkpoint::release_pages(const std::string& name) const {
  for (const char* suffix : {".weight", ".scales", ".biases"}) {
    const auto found = by_name_.find(name + suffix);
    if (found != by_name_.end()) {
      const CheckpointTensor& tensor = tensors()[found->second];
      tensor.file->release_pages(tensor.info.offset, tensor.info.bytes);
    }
  }
}

kernels::Weight Checkpoint::weight(
    const std::string& name,
    int out_features,
    int in_features) const {
  if (has(name + ".scales")) {
    return affine_weight(name, out_features, in_features);
  }
  const CheckpointTensor& tensor = find(name + ".weight");
  check_shape(tensor, {out_features, in_features});
  const auto format = weight_format(tensor.info.type);
  if (!format) {
    fail(
        tensor,
        "has type " + tensor.info.type + ", expected one of " + kWeightTypes);
  }
  check_finite(tensor);
  const auto dtype = float_dtype(tensor.info.type);
  const auto columns =
      dtype ? static_cast<uint64_t>(in_features)
            : tensor.info.bytes / static_cast<uint64_t>(out_features);
  count(tensor);
  return {
      .format = *format,
      .out_features = out_features,
      .in_features = in_features,
      .data = mapped_array(
          tensor.file,
          tensor.info.offset,
          {out_features, static_cast<int>(columns)},
          dtype.value_or(mx::uint8)),
      .scales = std::nullopt,
      .biases = std::nullopt};
}

mx::array Checkpoint::scale_array(
    const std::string& name,
    const std::vector<int64_t>& shape) const {
  const CheckpointTensor& tensor = find(name);
  check_shape(tensor, shape);
  const auto dtype = float_dtype(tensor.info.type);
  if (!dtype) {
    fail(
        tensor,
        "has type " + tensor.info.type + ", expected F32, F16 or BF16");
  }
  check_finite(tensor);
  count(tensor);
  mx::Shape dims;
  for (const int64_t n : shape) {
    dims.push_back(static_cast<int>(n));
  }
  return mapped_array(tensor.file, tensor.info.offset, std::move(dims), *dtype);
}

QuantizationParameters Checkpoint::quantization_of(
    const CheckpointTensor& tensor,
    const std::string& name) const {
  const auto& quantization = config().quantization;
  if (!quantization) {
    fail(tensor, "has scales, expected a key quantization in config.json");
  }
  const auto found = quantization->overrides.find(name);
  if (found == quantization->overrides.end()) {
    return quantization->all;
  }
  const auto& override = found->second;
  if (!override) {
    fail(
        tensor,
        "has scales, expected none: config.json says it isn't quantized");
  }
  return *override;
}

// MLX's three arrays. Bits and group size are the config's, and must agree
// with the arrays' shapes.
kernels::Weight Checkpoint::affine_weight(
    const std::string& name,
    int out_features,
    int in_features) const {
  const CheckpointTensor& tensor = find(name + ".weight");
  const QuantizationParameters parameters = quantization_of(tensor, name);
  const int bits = parameters.bits;
  const int group = parameters.group_size;
  if (tensor.info.type != "U32") {
    fail(
        tensor,
        "has type " + tensor.info.type + " beside scales, expected U32");
  }
  if (in_features % group != 0 || in_features * bits % 32 != 0) {
    fail(
        tensor,
        "has rows of " + std::to_string(in_features) +
            " elements, expected whole groups of " + std::to_string(group) +
            " and whole words of " + std::to_string(bits) + " bits");
  }
  check_shape(tensor, {out_features, in_features * bits / 32});
  count(tensor);
  const std::vector<int64_t> groups = {out_features, in_features / group};
  mx::array scales = scale_array(name + ".scales", groups);
  mx::array biases = scale_array(name + ".biases", groups);
  if (scales.dtype() != biases.dtype()) {
    fail(tensor, "has scales and biases of two types, expected one");
  }
  return {
      .format = WeightFormat::kAffine,
      .out_features = out_features,
      .in_features = in_features,
      .data = mapped_array(
          tensor.file,
          tensor.info.offset,
          {out_features, in_features * bits / 32},
          mx::uint32),
      .scales = std::move(scales),
      .biases = std::move(biases),
      .bits = bits,
      .group_size = group};
}

mx::array Checkpoint::vector(const std::string& name, int size) const {
  mx::array stored = scale_array(name, {size});
  if (stored.dtype() == mx::float32) {
    return stored;
  }
  mx::array converted = mx::astype(stored, mx::float32);
  converted.eval();
  return converted;
}

} // namespace sheave
