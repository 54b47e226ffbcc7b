#include "sheave/weights/text_assets.h"

#include "sheave/base/file_error.h"
#include "sheave/weights/gguf.h"
#include "sheave/weights/model_limits.h"

namespace sheave {
namespace {

GgufTokenizer gguf_tokenizer(const GgufFile& file) {
  const std::string prefix = "tokenizer.ggml.";
  GgufTokenizer tokenizer;
  tokenizer.model = file.string(prefix + "model").value_or("");
  tokenizer.pre = file.string(prefix + "pre").value_or("");
  tokenizer.tokens = file.strings(prefix + "tokens");
  tokenizer.scores = file.floats(prefix + "scores");
  for (const int64_t type : file.integers(prefix + "token_type")) {
    tokenizer.token_types.push_back(static_cast<int32_t>(type));
  }
  tokenizer.merges = file.strings(prefix + "merges");
  tokenizer.bos_token_id = gguf_token_id(file, prefix + "bos_token_id");
  tokenizer.eos_token_id = gguf_token_id(file, prefix + "eos_token_id");
  tokenizer.eot_token_id = gguf_token_id(file, prefix + "eot_token_id");
  tokenizer.unknown_token_id = gguf_token_id(file, prefix + "unknown_token_id");
  tokenizer.padding_token_id = gguf_token_id(file, prefix + "padding_token_id");
  tokenizer.add_bos_token = file.boolean(prefix + "add_bos_token");
  tokenizer.add_eos_token = file.boolean(prefix + "add_eos_token");
  tokenizer.add_space_prefix = file.boolean(prefix + "add_space_prefix");
  return tokenizer;
}

} // namespace

std::optional<int32_t> gguf_token_id(
    const GgufFile& file,
    const std::string& key) {
  constexpr IntegerRange kTokens = {0, kVocabulary.high};
  const auto id = file.integer(key);
  if (!id || *id == UINT32_MAX) {
    return std::nullopt;
  }
  if (*id < kTokens.low || *id > kTokens.high) {
    throw FileError(
        file.where() + ": key " + key + " is " + std::to_string(*id) +
        ", expected " + range_text(kTokens));
  }
  return static_cast<int32_t>(*id);
}

TextAssets text_assets_from_gguf(const GgufFile& file) {
  TextAssets assets;
  if (file.has("tokenizer.ggml.tokens")) {
    assets.gguf = gguf_tokenizer(file);
  }
  assets.gguf_chat_template =
      file.string("tokenizer.chat_template").value_or("");
  assets.gguf_tool_use_template =
      file.string("tokenizer.chat_template.tool_use").value_or("");
  return assets;
}

} // namespace sheave
