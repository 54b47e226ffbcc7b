// CheckpointFiles: a model's files, opened and described: config, texts, and a
// table of tensors over the mapped files. No MLX and no arrays: those are
// checkpoint.h's.
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "sheave/weights/mapped_file.h"
#include "sheave/weights/model_config.h"
#include "sheave/weights/tensor_info.h"
#include "sheave/weights/text_assets.h"

namespace sheave {

enum class CheckpointFormat { kSafetensors, kGguf };

/// A tensor, the name that models ask for, and the file it lies in.
struct CheckpointTensor {
  TensorInfo info;
  std::string canonical_name;
  std::shared_ptr<const MappedFile> file;
};

struct CheckpointFiles {
  CheckpointFormat format = CheckpointFormat::kSafetensors;
  ModelConfig config;
  TextAssets text_assets;
  /// In the order of the files.
  std::vector<CheckpointTensor> tensors;
};

/// Opens a folder with config.json and safetensors (one file, or shards with
/// an index), or a .gguf file. Reads headers only. Throws FileError.
CheckpointFiles open_checkpoint_files(const std::filesystem::path& path);

/// What a GGUF file's bytes say; the tensors' `file` is left empty. `where`
/// begins every message. Throws FileError.
CheckpointFiles describe_gguf(
    std::span<const uint8_t> bytes,
    const std::string& where);

} // namespace sheave
