// ChatSession: a conversation's turns, and the generator that answers them.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "sheave/base/result.h"
#include "sheave/engine/generator.h"
#include "sheave/engine/language_model.h"

namespace sheave {

/// See above. The model must outlive it.
class ChatSession {
 public:
  /// raw: each message is completed by itself, without template and history.
  ChatSession(
      const LanguageModel& model,
      const CacheOptions& caches,
      GenerationOptions options,
      std::string system,
      bool raw);

  /// Answers a message and remembers both; a cancelled answer is remembered as
  /// far as it went. After an error the conversation is as it was before.
  Result<Generation> answer(
      const std::string& message,
      const TextCallback& on_text,
      const std::atomic<bool>* cancel);

  /// Forgets the turns, keeps the system message.
  void clear();

  /// Sets the system message ("" for none) and forgets the turns.
  void set_system(std::string system);

  const std::vector<ChatMessage>& messages() const {
    return messages_;
  }

 private:
  const LanguageModel& model_;
  Generator generator_;
  GenerationOptions options_;
  std::string system_;
  bool raw_;
  std::vector<ChatMessage> messages_;
};

} // namespace sheave
