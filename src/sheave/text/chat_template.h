// A model's chat template: messages in, the prompt's text out. Jinja as
// Transformers configures it. Knows nothing of tokens; give the result to
// Tokenizer::encode_prompt.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "sheave/base/result.h"

namespace sheave {

/// Where a model's template may be; each empty where there is none. The first
/// that has one counts: chat_template.jinja, then `chat_template` of
/// tokenizer_config.json (a string, or a list of named ones), then the keys
/// `tokenizer.chat_template` and `tokenizer.chat_template.tool_use` of GGUF.
struct ChatTemplateSources {
  std::string_view chat_template_jinja;
  std::string_view tokenizer_config_json;
  std::string_view gguf_chat_template;
  std::string_view gguf_tool_use_template;
};

/// One conversation. The JSON texts are OpenAI's shapes; "" where there is
/// nothing.
struct ChatRequest {
  std::string_view messages_json;
  std::string_view tools_json;
  /// An object whose members become variables of the template, for example
  /// {"enable_thinking": false}.
  std::string_view extra_json;
  bool add_generation_prompt = true;
  /// What the template takes for now, in Unix seconds; the clock if not given.
  std::optional<int64_t> now_s;
};

/// A compiled template. Const calls may come from any thread.
class ChatTemplate {
 public:
  /// `bos_token` and `eos_token` are the tokens' texts, "" if there are none.
  /// Tries out which shapes of messages the template takes (a few renders).
  /// Errors: kInvalidFile with the line that isn't Jinja.
  static Result<ChatTemplate> from_source(
      std::string_view source,
      std::string_view bos_token,
      std::string_view eos_token);

  /// As from_source, from wherever the model keeps its template. A template
  /// named tool_use serves the requests that have tools.
  /// Errors: kNotFound if the model has no template.
  static Result<ChatTemplate> from_sources(
      const ChatTemplateSources& sources,
      std::string_view bos_token,
      std::string_view eos_token);

  ChatTemplate(ChatTemplate&&) noexcept;
  ChatTemplate& operator=(ChatTemplate&&) noexcept;
  ~ChatTemplate();

  /// The prompt. Messages in a shape that this template can't take are
  /// converted: a tool call's arguments between string and object, `content`
  /// between null and "", text parts to one string.
  /// Errors: kInvalidArgument, with the template's own words if it raised, or
  /// naming the field that isn't what it should be. A template that works too
  /// long or nests too deep is stopped, also with kInvalidArgument. Not seen
  /// by that limit: printing or comparing a list that holds itself twice, many
  /// levels down (minijinja 3.1.0), so load templates from sources you trust.
  [[nodiscard]] Result<std::string> render(const ChatRequest& request) const;

 private:
  struct Rust;
  explicit ChatTemplate(std::unique_ptr<Rust> rust);

  std::unique_ptr<Rust> rust_;
};

/// The source of the template that serves requests with tools, or those
/// without. Errors: kNotFound if there is none, kInvalidFile.
Result<std::string> choose_chat_template(
    const ChatTemplateSources& sources,
    bool for_tools);

} // namespace sheave
