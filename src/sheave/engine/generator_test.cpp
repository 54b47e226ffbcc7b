#include "sheave/engine/generator.h"

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <string>
#include <vector>

namespace sheave {
namespace {

namespace fs = std::filesystem;

/// A tiny checkpoint with random weights (tests/fixtures/golden).
LanguageModel tiny(const std::string& name) {
  return LanguageModel::load(
      fs::path(SHEAVE_SOURCE_DIR) / "tests" / "fixtures" / "golden" / name);
}

std::vector<int32_t> ids(int first, int count) {
  std::vector<int32_t> result;
  for (int i = 0; i < count; ++i) {
    result.push_back(5 + (first + i * 7) % 300);
  }
  return result;
}

std::vector<int32_t> concat(
    std::vector<int32_t> a,
    const std::vector<int32_t>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

constexpr CacheOptions kExact = {.dtype = mx::float32};

Generation answer(
    Generator& generator,
    const std::vector<int32_t>& prompt,
    GenerationOptions options = {.max_tokens = 12, .ignore_eos = true}) {
  auto result = generator.generate(prompt, options);
  EXPECT_TRUE(result) << result.error().message;
  return *result;
}

class GeneratorOf : public ::testing::TestWithParam<const char*> {};

TEST_P(GeneratorOf, GivesTheSameAnswerToTheSamePromptTwice) {
  const LanguageModel model = tiny(GetParam());
  Generator generator(model, kExact);
  const auto first = answer(generator, ids(0, 9));
  const auto second = answer(generator, ids(0, 9));
  EXPECT_EQ(first.stats.cached_tokens, 0);
  EXPECT_EQ(first.tokens, second.tokens);
  EXPECT_EQ(first.text, second.text);
}

TEST_P(GeneratorOf, ContinuesAConversationAsIfItWereComputedWhole) {
  const LanguageModel model = tiny(GetParam());
  Generator generator(model, kExact);
  std::vector<int32_t> history = ids(0, 20);
  for (int turn = 0; turn < 3; ++turn) {
    const auto got = answer(generator, history);
    Generator fresh(model, kExact);
    EXPECT_EQ(got.tokens, answer(fresh, history).tokens) << "turn " << turn;
    if (turn > 0) {
      EXPECT_GE(got.stats.cached_tokens, got.stats.prompt_tokens - 14);
    }
    history = concat(concat(history, got.tokens), ids(turn, 6));
  }
}

TEST_P(GeneratorOf, BranchesOffInTheMiddle) {
  const LanguageModel model = tiny(GetParam());
  Generator generator(model, kExact);
  answer(generator, ids(0, 60));
  const auto branch = concat(ids(0, 30), ids(100, 9));
  Generator fresh(model, kExact);
  EXPECT_EQ(answer(generator, branch).tokens, answer(fresh, branch).tokens);
}

INSTANTIATE_TEST_SUITE_P(
    Families,
    GeneratorOf,
    ::testing::Values("llama", "gemma3_text", "ministral_swa"));

TEST(Generator, ReusesTheSharedPrefixOfAFullCache) {
  const LanguageModel model = tiny("llama");
  Generator generator(model, kExact);
  answer(generator, ids(0, 60));
  const auto got = answer(generator, concat(ids(0, 30), ids(100, 9)));
  EXPECT_EQ(got.stats.cached_tokens, 30);
  EXPECT_EQ(got.stats.prompt_tokens, 39);
}

TEST(Generator, StopsAtTheLimit) {
  const LanguageModel model = tiny("llama");
  Generator generator(model, kExact);
  const auto got =
      answer(generator, ids(0, 5), {.max_tokens = 3, .ignore_eos = true});
  EXPECT_EQ(got.tokens.size(), 3U);
  EXPECT_EQ(got.finish_reason, FinishReason::kLength);
  EXPECT_STREQ(finish_reason_name(got.finish_reason), "length");
}

TEST(Generator, StopsBeforeAStopStringAndKeepsIt) {
  const LanguageModel model = tiny("llama");
  Generator generator(model, kExact);
  const auto whole = answer(generator, ids(0, 5), {.max_tokens = 40});
  ASSERT_GT(whole.text.size(), 8U);
  const size_t at = whole.text.size() / 2;
  const std::string stop = whole.text.substr(at, 4);
  const auto cut =
      answer(generator, ids(0, 5), {.max_tokens = 40, .stop = {stop}});
  EXPECT_EQ(cut.finish_reason, FinishReason::kStop);
  EXPECT_EQ(cut.text, whole.text.substr(0, whole.text.find(stop)));
}

TEST(Generator, StreamsExactlyTheText) {
  const LanguageModel model = tiny("llama");
  Generator generator(model, kExact);
  std::string streamed;
  const auto got = generator.generate(
      ids(0, 5),
      {.max_tokens = 40, .ignore_eos = true},
      [&](std::string_view piece) { streamed += piece; });
  ASSERT_TRUE(got);
  EXPECT_EQ(streamed, got->text);
  EXPECT_FALSE(streamed.empty());
}

TEST(Generator, GoesOnAfterACancelledAnswer) {
  const LanguageModel model = tiny("llama");
  Generator generator(model, kExact);
  std::atomic<bool> cancel = false;
  int pieces = 0;
  const auto cut = generator.generate(
      ids(0, 5),
      {.max_tokens = 40, .ignore_eos = true},
      [&](std::string_view) { cancel = ++pieces == 3; },
      &cancel);
  ASSERT_TRUE(cut);
  EXPECT_EQ(cut->finish_reason, FinishReason::kCancelled);
  EXPECT_LT(cut->tokens.size(), 40U);
  Generator fresh(model, kExact);
  EXPECT_EQ(
      answer(generator, ids(0, 5)).tokens,
      answer(fresh, ids(0, 5)).tokens);
}

TEST(Generator, ACancelledPromptComputesNothing) {
  const LanguageModel model = tiny("llama");
  Generator generator(model, kExact);
  const std::atomic<bool> cancel = true;
  const auto got = generator.generate(ids(0, 5), {}, nullptr, &cancel);
  ASSERT_TRUE(got);
  EXPECT_EQ(got->finish_reason, FinishReason::kCancelled);
  EXPECT_TRUE(got->tokens.empty());
}

TEST(Generator, RefusesAPromptThatDoesNotFitWithBothNumbers) {
  const LanguageModel model = tiny("llama");
  Generator generator(model, kExact);
  const auto got = generator.generate(ids(0, 2048), {});
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code, ErrorCode::kContextFull);
  EXPECT_NE(got.error().message.find("2048 tokens"), std::string::npos);
  EXPECT_NE(got.error().message.find("context of 2048"), std::string::npos);
}

TEST(Generator, StopsWhenTheContextIsFull) {
  const LanguageModel model = tiny("llama");
  Generator generator(model, kExact);
  const auto got =
      answer(generator, ids(0, 2045), {.max_tokens = -1, .ignore_eos = true});
  EXPECT_EQ(got.finish_reason, FinishReason::kContextFull);
  EXPECT_EQ(got.tokens.size(), 3U);
}

TEST(Generator, RefusesEmptyPromptsAndForeignIds) {
  const LanguageModel model = tiny("llama");
  Generator generator(model, kExact);
  EXPECT_FALSE(generator.generate({}, {}));
  for (const int32_t id : {-1, 384}) {
    const std::vector<int32_t> prompt = {5, id};
    const auto got = generator.generate(prompt, {});
    ASSERT_FALSE(got);
    EXPECT_NE(got.error().message.find(std::to_string(id)), std::string::npos);
  }
}

TEST(LanguageModel, EncodesAConversationByItsTemplate) {
  const LanguageModel model = tiny("llama");
  ASSERT_TRUE(model.has_chat_template());
  const std::vector<ChatMessage> messages = {{"user", "hello"}};
  const auto tokens = model.encode_chat(messages);
  ASSERT_TRUE(tokens) << tokens.error().message;
  EXPECT_EQ(tokens->at(0), 1); // BOS, which this tokenizer asks for
  EXPECT_EQ(tokens->at(1), 3); // <|im_start|>
  EXPECT_EQ(std::count(tokens->begin(), tokens->end(), 4), 1); // <|im_end|>
  EXPECT_EQ(model.eos_token_ids(), (std::vector<int32_t>{2, 4}));
}

} // namespace
} // namespace sheave
