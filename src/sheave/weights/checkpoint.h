// Checkpoint: an opened model file or folder: its config, its texts, and its
// tensors by canonical names. Tensors lie over the mapped files; quantized ones
// stay as they are stored.
#pragma once

#include <mlx/array.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sheave/kernels/weight.h"
#include "sheave/weights/checkpoint_files.h"

namespace sheave {

namespace mx = mlx::core;

/// Called as tensors are taken, with bytes done so far and in all tensors of
/// the files, needed or not.
using LoadProgress = std::function<void(uint64_t done, uint64_t total)>;

/// See above. Arrays keep the mapping alive after the checkpoint is gone. For
/// one thread at a time, as progress is counted.
class Checkpoint {
 public:
  /// Opens a folder with config.json and safetensors (one file, or shards with
  /// an index), or a .gguf file. Reads headers only. Throws FileError.
  static Checkpoint open(
      const std::filesystem::path& path,
      LoadProgress progress = nullptr);

  const std::filesystem::path& path() const {
    return path_;
  }
  CheckpointFormat format() const {
    return files_.format;
  }
  const ModelConfig& config() const {
    return files_.config;
  }
  const TextAssets& text_assets() const {
    return files_.text_assets;
  }
  /// In the order of the files.
  const std::vector<CheckpointTensor>& tensors() const {
    return files_.tensors;
  }
  /// Whether there is a tensor of this canonical name, suffix included.
  bool has(const std::string& name) const {
    return by_name_.contains(name);
  }

  /// The matrix `name` + ".weight", e.g. "model.layers.0.self_attn.q_proj",
  /// float, MLX-quantized or GGUF-quantized. Throws FileError, naming the
  /// tensor, if it is missing, has another shape, has a type that can't be
  /// computed with, or holds a NaN or infinity (in its scales if quantized).
  kernels::Weight
  weight(const std::string& name, int out_features, int in_features) const;

  /// Lets the system take the memory of a weight's pages, if its file is
  /// mapped; arrays over it stay valid and are read again where touched.
  void release_pages(const std::string& name) const;

  /// The vector `name` (suffix included) as [size] float32, converted if it
  /// is stored as float16 or bfloat16. Throws FileError as weight().
  mx::array vector(const std::string& name, int size) const;

 private:
  Checkpoint() = default;

  void index_tensors();
  const CheckpointTensor& find(const std::string& name) const;
  [[noreturn]] void fail(
      const CheckpointTensor& tensor,
      const std::string& what) const;
  void check_shape(
      const CheckpointTensor& tensor,
      const std::vector<int64_t>& expected) const;
  void check_finite(const CheckpointTensor& tensor) const;
  QuantizationParameters quantization_of(
      const CheckpointTensor& tensor,
      const std::string& name) const;
  kernels::Weight affine_weight(
      const std::string& name,
      int out_features,
      int in_features) const;
  mx::array scale_array(
      const std::string& name,
      const std::vector<int64_t>& shape) const;
  void count(const CheckpointTensor& tensor) const;

  std::filesystem::path path_;
  CheckpointFiles files_;
  std::map<std::string, size_t> by_name_;
  LoadProgress progress_;
  uint64_t total_bytes_ = 0;
  mutable uint64_t done_bytes_ = 0; // what progress_ has been told
};

/// Checkpoint::open.
inline Checkpoint open_checkpoint(
    const std::filesystem::path& path,
    LoadProgress progress = nullptr) {
  return Checkpoint::open(path, std::move(progress));
}

} // namespace sheave
