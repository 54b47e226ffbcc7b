#include "sheave/weights/checkpoint_files.h"

#include <map>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include "sheave/base/file_error.h"
#include "sheave/weights/gguf.h"
#include "sheave/weights/safetensors.h"
#include "sheave/weights/tensor_names.h"

namespace sheave {
namespace {

namespace fs = std::filesystem;

constexpr const char* kIndexName = "model.safetensors.index.json";

/// A text file's content; empty if there is no such file. Throws FileError if
/// it is there but can't be read, or is too large for what it should be.
std::string read_optional(const fs::path& path) {
  constexpr size_t kMaxBytes = size_t{256} << 20;
  std::error_code ignored;
  if (!fs::exists(path, ignored)) {
    return {};
  }
  const auto file = MappedFile::open(path);
  const auto bytes = file->bytes();
  if (bytes.size() > kMaxBytes) {
    throw FileError(
        path.string() + ": has " + std::to_string(bytes.size()) +
        " bytes, expected at most " + std::to_string(kMaxBytes));
  }
  return {bytes.begin(), bytes.end()};
}

void read_text_files(const fs::path& folder, TextAssets& assets) {
  assets.tokenizer_json = read_optional(folder / "tokenizer.json");
  assets.tokenizer_config_json =
      read_optional(folder / "tokenizer_config.json");
  assets.generation_config_json =
      read_optional(folder / "generation_config.json");
  assets.chat_template_jinja = read_optional(folder / "chat_template.jinja");
}

/// Adds a safetensors file's tensors; returns their stored names.
std::set<std::string> add_safetensors(
    const fs::path& path,
    std::vector<CheckpointTensor>& tensors) {
  const auto file = MappedFile::open(path);
  std::set<std::string> names;
  for (TensorInfo& info : parse_safetensors(file->bytes(), path.string())) {
    names.insert(info.name);
    std::string canonical = canonical_name(info.name);
    tensors.push_back({std::move(info), std::move(canonical), file});
  }
  return names;
}

void add_shards(
    const fs::path& folder,
    const std::map<std::string, std::string>& shard_of,
    std::vector<CheckpointTensor>& tensors) {
  std::map<std::string, std::set<std::string>> names; // by shard
  for (const auto& [tensor, shard] : shard_of) {
    names[shard];
  }
  for (auto& [shard, present] : names) {
    present = add_safetensors(folder / shard, tensors);
  }
  for (const auto& [tensor, shard] : shard_of) {
    if (!names[shard].contains(tensor)) {
      throw FileError(
          (folder / shard).string() + ": tensor " + printable(tensor) +
          " is missing, expected it here by " + kIndexName);
    }
  }
}

CheckpointFiles open_folder(const fs::path& folder) {
  CheckpointFiles files;
  const fs::path config = folder / "config.json";
  files.text_assets.config_json = read_optional(config);
  if (files.text_assets.config_json.empty()) {
    throw FileError(config.string() + ": no such file, expected it");
  }
  files.config =
      config_from_json(files.text_assets.config_json, config.string());
  read_text_files(folder, files.text_assets);
  const fs::path index = folder / kIndexName;
  const std::string index_text = read_optional(index);
  if (index_text.empty()) {
    add_safetensors(folder / "model.safetensors", files.tensors);
  } else {
    add_shards(
        folder,
        parse_shard_index(index_text, index.string()),
        files.tensors);
  }
  return files;
}

CheckpointFiles open_gguf(const fs::path& path) {
  const auto file = MappedFile::open(path);
  CheckpointFiles files = describe_gguf(file->bytes(), path.string());
  for (CheckpointTensor& tensor : files.tensors) {
    tensor.file = file;
  }
  return files;
}

} // namespace

CheckpointFiles describe_gguf(
    std::span<const uint8_t> bytes,
    const std::string& where) {
  const GgufFile file = GgufFile::parse(bytes, where);
  CheckpointFiles files;
  files.format = CheckpointFormat::kGguf;
  files.config = config_from_gguf(file);
  files.text_assets = text_assets_from_gguf(file);
  for (const TensorInfo& info : file.tensors()) {
    files.tensors.push_back(
        {info,
         canonical_gguf_name(info.name, files.config.model_type),
         nullptr});
  }
  return files;
}

CheckpointFiles open_checkpoint_files(const fs::path& path) {
  std::error_code error;
  if (!fs::exists(path, error)) {
    throw FileError(
        path.string() + ": " +
        (error ? error.message() : "no such file or folder") +
        ", expected a model's folder or .gguf file");
  }
  return fs::is_directory(path, error) ? open_folder(path) : open_gguf(path);
}

} // namespace sheave
