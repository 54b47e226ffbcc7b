#include "sheave/cli/chat_session.h"

#include <utility>

namespace sheave {

ChatSession::ChatSession(
    const LanguageModel& model,
    const CacheOptions& caches,
    GenerationOptions options,
    std::string system,
    bool raw)
    : model_(model),
      generator_(model, caches),
      options_(std::move(options)),
      raw_(raw) {
  set_system(std::move(system));
}

Result<Generation> ChatSession::answer(
    const std::string& message,
    const TextCallback& on_text,
    const std::atomic<bool>* cancel) {
  std::vector<ChatMessage> turns = messages_;
  turns.push_back({"user", message});
  const auto prompt = raw_ ? model_.encode(message) : model_.encode_chat(turns);
  if (!prompt) {
    return tl::unexpected(prompt.error());
  }
  auto result = generator_.generate(*prompt, options_, on_text, cancel);
  if (result && !raw_) {
    turns.push_back({"assistant", result->text});
    messages_ = std::move(turns);
  }
  return result;
}

void ChatSession::clear() {
  messages_.clear();
  if (!system_.empty()) {
    messages_.push_back({"system", system_});
  }
}

void ChatSession::set_system(std::string system) {
  system_ = std::move(system);
  clear();
}

} // namespace sheave
