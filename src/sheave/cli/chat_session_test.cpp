#include "sheave/cli/chat_session.h"

#include <gtest/gtest.h>

#include <filesystem>

namespace sheave {
namespace {

namespace fs = std::filesystem;

LanguageModel tiny() {
  return LanguageModel::load(
      fs::path(SHEAVE_SOURCE_DIR) / "tests" / "fixtures" / "golden" / "llama");
}

ChatSession session_of(const LanguageModel& model, std::string system) {
  return {
      model,
      {.dtype = mx::float32},
      {.max_tokens = 5, .ignore_eos = true},
      std::move(system),
      false};
}

TEST(ChatSession, RemembersTheTurns) {
  const LanguageModel model = tiny();
  ChatSession session = session_of(model, "be brief");
  const auto first = session.answer("hello", nullptr, nullptr);
  ASSERT_TRUE(first) << first.error().message;
  const auto second = session.answer("again", nullptr, nullptr);
  ASSERT_TRUE(second);
  ASSERT_EQ(session.messages().size(), 5U);
  EXPECT_EQ(session.messages()[0].role, "system");
  EXPECT_EQ(session.messages()[2].content, first->text);
  EXPECT_GT(second->stats.cached_tokens, first->stats.prompt_tokens / 2);
}

TEST(ChatSession, ForgetsAllButTheSystemMessage) {
  const LanguageModel model = tiny();
  ChatSession session = session_of(model, "be brief");
  ASSERT_TRUE(session.answer("hello", nullptr, nullptr));
  session.clear();
  ASSERT_EQ(session.messages().size(), 1U);
  EXPECT_EQ(session.messages()[0].content, "be brief");
  session.set_system("");
  EXPECT_TRUE(session.messages().empty());
}

TEST(ChatSession, StaysAsItWasAfterAnError) {
  const LanguageModel model = tiny();
  ChatSession session = session_of(model, "");
  EXPECT_FALSE(session.answer(std::string(20000, 'x'), nullptr, nullptr));
  EXPECT_FALSE(session.answer("\xff\xfe", nullptr, nullptr));
  EXPECT_TRUE(session.messages().empty());
  EXPECT_TRUE(session.answer("hello", nullptr, nullptr));
}

} // namespace
} // namespace sheave
