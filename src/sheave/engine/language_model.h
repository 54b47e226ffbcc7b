// LanguageModel: a network together with its text stack, loaded from one path.
// Immutable once loaded; conversations are Generators.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sheave/base/result.h"
#include "sheave/models/model.h"
#include "sheave/text/chat_template.h"
#include "sheave/text/tokenizer.h"

namespace sheave {

/// Called while weights are read, with bytes done so far and in all.
using ProgressCallback =
    std::function<void(uint64_t done_bytes, uint64_t total_bytes)>;

struct LoadOptions {
  Arithmetic arithmetic = Arithmetic::kFast;
  ProgressCallback progress = nullptr;
};

/// One turn of a conversation. role: "system", "user" or "assistant".
struct ChatMessage {
  std::string role;
  std::string content;
};

/// What a chat template gets beside the messages. tools_json and
/// template_arguments_json are JSON texts, empty for none.
struct ChatOptions {
  std::string tools_json;
  std::string template_arguments_json;
};

/// See above.
class LanguageModel {
 public:
  /// Loads a checkpoint folder or .gguf file. Throws FileError, naming file
  /// and tensor or key, when it can't be used.
  static LanguageModel load(
      const std::filesystem::path& path,
      const LoadOptions& options = {});

  const Model& model() const {
    return *model_;
  }
  const Tokenizer& tokenizer() const {
    return *tokenizer_;
  }
  bool has_chat_template() const {
    return chat_template_.has_value();
  }
  /// Tokens that end an answer, sorted.
  const std::vector<int32_t>& eos_token_ids() const {
    return eos_token_ids_;
  }

  /// Tokens of plain text, with BOS where the tokenizer asks for it. Spellings
  /// of special tokens in the text count as such.
  Result<std::vector<int32_t>> encode(const std::string& text) const;

  /// Tokens of a conversation, up to where the assistant's next turn begins.
  /// Fails with kUnsupported without a chat template, and with the template's
  /// own message where it raises.
  Result<std::vector<int32_t>> encode_chat(
      std::span<const ChatMessage> messages,
      const ChatOptions& options = {}) const;

 private:
  LanguageModel() = default;

  std::unique_ptr<Model> model_;
  std::unique_ptr<Tokenizer> tokenizer_;
  std::optional<ChatTemplate> chat_template_;
  std::vector<int32_t> eos_token_ids_;
};

} // namespace sheave
