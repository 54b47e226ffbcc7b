// ModelSummary: what can be said of a checkpoint without computing with it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace sheave {

/// One layer and the cache it gets, e.g. "rotating window=512 plain float16".
struct LayerSummary {
  std::string attention; // "full" or "sliding"
  std::string cache;
};

/// One tensor as stored. name: canonical; stored_name: the file's own.
struct TensorSummary {
  std::string name;
  std::string stored_name;
  std::string type;
  std::vector<int64_t> shape;
  uint64_t bytes = 0;
};

/// See above. quantization: the types that hold most bytes, in words.
struct ModelSummary {
  std::filesystem::path path;
  std::string format; // "gguf" or "safetensors"
  std::string architecture;
  bool supported = false;
  int64_t parameters = 0;
  uint64_t bytes = 0;
  int context_tokens = 0;
  int vocab_size = 0;
  int hidden_size = 0;
  int intermediate_size = 0;
  int num_attention_heads = 0;
  int num_key_value_heads = 0;
  int head_dim = 0;
  std::optional<int> sliding_window;
  bool tied_head = false;
  std::string quantization;
  bool has_chat_template = false;
  bool has_tokenizer = false;
  std::vector<LayerSummary> layers;
  std::vector<TensorSummary> tensors;
};

/// Opens the checkpoint at `path` and describes it. Throws FileError when it
/// isn't a readable checkpoint; an architecture that isn't supported is
/// described all the same, with supported = false and no layers.
ModelSummary summarize_model(const std::filesystem::path& path);

} // namespace sheave
