#include "sheave/text/chat_template.h"

#include <utility>

#include "sheave/text/rust_handle.h"

namespace sheave {

struct ChatTemplate::Rust {
  RustTemplate standard;
  RustTemplate tool_use; // null if the same template serves both
};

namespace {

Result<RustTemplate> compile(
    std::string_view source,
    std::string_view bos_token,
    std::string_view eos_token) {
  SheaveTemplate* made = nullptr;
  return rust_call(
      [&](SheaveBytes* error) {
        return sheave_template_new(
            rust_slice(source),
            rust_slice(bos_token),
            rust_slice(eos_token),
            &made,
            error);
      },
      [&] { return RustTemplate(made); });
}

/// "", "null" and "[]" ask for no tools.
bool has_tools(std::string_view tools_json) {
  return tools_json.find('{') != std::string_view::npos;
}

} // namespace

ChatTemplate::ChatTemplate(std::unique_ptr<Rust> rust)
    : rust_(std::move(rust)) {}
ChatTemplate::ChatTemplate(ChatTemplate&&) noexcept = default;
ChatTemplate& ChatTemplate::operator=(ChatTemplate&&) noexcept = default;
ChatTemplate::~ChatTemplate() = default;

Result<ChatTemplate> ChatTemplate::from_source(
    std::string_view source,
    std::string_view bos_token,
    std::string_view eos_token) {
  return compile(source, bos_token, eos_token).map([](RustTemplate&& made) {
    auto rust = std::make_unique<Rust>();
    rust->standard = std::move(made);
    return ChatTemplate(std::move(rust));
  });
}

Result<ChatTemplate> ChatTemplate::from_sources(
    const ChatTemplateSources& sources,
    std::string_view bos_token,
    std::string_view eos_token) {
  const auto standard = choose_chat_template(sources, /*for_tools=*/false);
  if (!standard) {
    return tl::unexpected(standard.error());
  }
  auto chat = from_source(*standard, bos_token, eos_token);
  const auto tool_use = choose_chat_template(sources, /*for_tools=*/true);
  if (!chat || !tool_use || *tool_use == *standard) {
    return chat;
  }
  auto made = compile(*tool_use, bos_token, eos_token);
  if (!made) {
    return tl::unexpected(std::move(made).error());
  }
  chat->rust_->tool_use = std::move(*made);
  return chat;
}

Result<std::string> ChatTemplate::render(const ChatRequest& request) const {
  const SheaveChatRequest source{
      .messages_json = rust_slice(request.messages_json),
      .tools_json = rust_slice(request.tools_json),
      .extra_json = rust_slice(request.extra_json),
      .add_generation_prompt = request.add_generation_prompt,
      .now_s = request.now_s.value_or(SHEAVE_TEXT_NONE)};
  const bool tool_use = rust_->tool_use && has_tools(request.tools_json);
  const auto& chosen = tool_use ? rust_->tool_use : rust_->standard;
  SheaveBytes text{nullptr, 0};
  return rust_call(
      [&](SheaveBytes* error) {
        return sheave_template_render(chosen.get(), &source, &text, error);
      },
      [&] { return take_rust_bytes(text); });
}

Result<std::string> choose_chat_template(
    const ChatTemplateSources& sources,
    bool for_tools) {
  const SheaveTemplateSources places{
      .jinja_file = rust_slice(sources.chat_template_jinja),
      .tokenizer_config_json = rust_slice(sources.tokenizer_config_json),
      .gguf = rust_slice(sources.gguf_chat_template),
      .gguf_tool_use = rust_slice(sources.gguf_tool_use_template)};
  SheaveBytes text{nullptr, 0};
  return rust_call(
      [&](SheaveBytes* error) {
        return sheave_template_choose(&places, for_tools, &text, error);
      },
      [&] { return take_rust_bytes(text); });
}

} // namespace sheave
