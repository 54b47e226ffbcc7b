// TextAssets: what a checkpoint says about text, as plain data: the sources of
// tokenizer, chat template and stop tokens. No MLX, and nothing is interpreted
// here; the text room does that.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sheave {

class GgufFile;

/// A GGUF file's tokenizer.ggml.* keys; fields are empty where absent.
struct GgufTokenizer {
  std::string model;
  std::string pre;
  std::vector<std::string> tokens;
  std::vector<float> scores;
  std::vector<int32_t> token_types;
  std::vector<std::string> merges;
  std::optional<int32_t> bos_token_id;
  std::optional<int32_t> eos_token_id;
  std::optional<int32_t> eot_token_id;
  std::optional<int32_t> unknown_token_id;
  std::optional<int32_t> padding_token_id;
  std::optional<bool> add_bos_token;
  std::optional<bool> add_eos_token;
  std::optional<bool> add_space_prefix;
};

/// Texts of files, empty where the checkpoint has none; `gguf` only for GGUF
/// files that carry a tokenizer.
struct TextAssets {
  std::string tokenizer_json;
  std::string tokenizer_config_json;
  std::string generation_config_json;
  std::string config_json;
  std::string chat_template_jinja;
  std::optional<GgufTokenizer> gguf;
  std::string gguf_chat_template;
  std::string gguf_tool_use_template;

  bool has_tokenizer() const {
    return !tokenizer_json.empty() || gguf.has_value();
  }
};

/// The token id under a key, nothing if it is absent or 4294967295, which is
/// llama.cpp's "none". Throws FileError if it is beyond any vocabulary.
std::optional<int32_t> gguf_token_id(
    const GgufFile& file,
    const std::string& key);

/// From a GGUF file's tokenizer.* keys. Tokens and merges are bytes as stored.
/// Throws FileError, naming the key, if one holds another kind of value.
TextAssets text_assets_from_gguf(const GgufFile& file);

} // namespace sheave
