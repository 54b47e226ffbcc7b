#include "sheave/engine/language_model.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "sheave/base/file_error.h"
#include "sheave/models/registry.h"

namespace sheave {
namespace {

namespace fs = std::filesystem;

/// The value, or what went wrong as a FileError of this checkpoint.
template <typename T>
T value_of(Result<T> result, const fs::path& path) {
  if (!result) {
    throw FileError(path.string() + ": " + result.error().message);
  }
  return std::move(*result);
}

GgufVocabulary vocabulary_of(const GgufTokenizer& from) {
  return {
      .model = from.model,
      .pre = from.pre,
      .tokens = from.tokens,
      .scores = from.scores,
      .token_types = from.token_types,
      .merges = from.merges,
      .bos_token_id = from.bos_token_id,
      .eos_token_id = from.eos_token_id,
      .eot_token_id = from.eot_token_id,
      .unknown_token_id = from.unknown_token_id,
      .padding_token_id = from.padding_token_id,
      .add_bos_token = from.add_bos_token,
      .add_eos_token = from.add_eos_token,
      .add_space_prefix = from.add_space_prefix};
}

Tokenizer make_tokenizer(const TextAssets& assets, const fs::path& path) {
  if (assets.gguf) {
    return value_of(Tokenizer::from_gguf(vocabulary_of(*assets.gguf)), path);
  }
  if (assets.tokenizer_json.empty()) {
    throw FileError(
        path.string() + ": has no tokenizer (tokenizer.json, or " +
        "tokenizer.ggml.tokens in a GGUF file)");
  }
  return value_of(
      Tokenizer::from_json(assets.tokenizer_json, assets.tokenizer_config_json),
      path / "tokenizer.json");
}

std::string token_text(
    const Tokenizer& tokenizer,
    std::optional<int32_t> token) {
  return token ? tokenizer.id_to_token(*token).value_or("") : "";
}

std::optional<ChatTemplate> make_chat_template(
    const TextAssets& assets,
    const Tokenizer& tokenizer,
    const fs::path& path) {
  auto result = ChatTemplate::from_sources(
      {.chat_template_jinja = assets.chat_template_jinja,
       .tokenizer_config_json = assets.tokenizer_config_json,
       .gguf_chat_template = assets.gguf_chat_template,
       .gguf_tool_use_template = assets.gguf_tool_use_template},
      token_text(tokenizer, tokenizer.bos_token_id()),
      token_text(tokenizer, tokenizer.eos_token_id()));
  if (!result && result.error().code == ErrorCode::kNotFound) {
    return std::nullopt;
  }
  return value_of(std::move(result), path);
}

} // namespace

LanguageModel LanguageModel::load(
    const fs::path& path,
    const LoadOptions& options) {
  const Checkpoint checkpoint = open_checkpoint(path, options.progress);
  const TextAssets& assets = checkpoint.text_assets();
  LanguageModel result;
  result.model_ = make_model(checkpoint, options.arithmetic);
  result.tokenizer_ = std::make_unique<Tokenizer>(make_tokenizer(assets, path));
  const Tokenizer& tokenizer = *result.tokenizer_;
  const int vocabulary = result.model_->config().vocab_size;
  if (tokenizer.vocab_size() > vocabulary) {
    throw FileError(
        path.string() + ": the tokenizer has " +
        std::to_string(tokenizer.vocab_size()) +
        " tokens, the model's embedding only " + std::to_string(vocabulary));
  }
  result.chat_template_ = make_chat_template(assets, tokenizer, path);
  result.eos_token_ids_ = value_of(
      tokenizer.eos_token_ids(
          assets.generation_config_json,
          assets.config_json),
      path);
  return result;
}

Result<std::vector<int32_t>> LanguageModel::encode(
    const std::string& text) const {
  return tokenizer_->encode(text, {.add_special = true, .parse_special = true});
}

Result<std::vector<int32_t>> LanguageModel::encode_chat(
    std::span<const ChatMessage> messages,
    const ChatOptions& options) const {
  if (!chat_template_) {
    return fail(ErrorCode::kUnsupported, "the model has no chat template");
  }
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const ChatMessage& message : messages) {
    list.push_back({{"role", message.role}, {"content", message.content}});
  }
  std::string messages_json;
  try {
    messages_json = list.dump();
  } catch (const nlohmann::json::exception&) { // thrown for nothing else
    return fail(ErrorCode::kInvalidArgument, "a message is not valid UTF-8");
  }
  const auto rendered = chat_template_->render(
      {.messages_json = messages_json,
       .tools_json = options.tools_json,
       .extra_json = options.template_arguments_json});
  if (!rendered) {
    return tl::unexpected(rendered.error());
  }
  return tokenizer_->encode_prompt(*rendered);
}

} // namespace sheave
