#include "sheave/weights/text_assets.h"

#include <gtest/gtest.h>

#include "sheave/weights/gguf.h"
#include "sheave/weights/weights_test_support.h"

namespace sheave {
namespace {

using Builder = GgufBuilder;

TextAssets parse(const Builder& builder) {
  return text_assets_from_gguf(
      GgufFile::parse(bytes_of(builder.build()), "m.gguf"));
}

Builder small_vocabulary() {
  Builder builder;
  builder.add("tokenizer.ggml.model", "gpt2");
  builder.add("tokenizer.ggml.pre", "smollm");
  builder.add_list(
      "tokenizer.ggml.tokens",
      Builder::kString,
      2,
      Builder::text("a") + Builder::text("\xff"));
  builder
      .add_list("tokenizer.ggml.token_type", Builder::kI32, 2, raw(1) + raw(6));
  builder.add_list(
      "tokenizer.ggml.scores",
      Builder::kF32,
      2,
      raw(0.0F) + raw(-1.5F));
  builder.add_list(
      "tokenizer.ggml.merges",
      Builder::kString,
      1,
      Builder::text("a b"));
  return builder;
}

TEST(TextAssets, CarryTheGgufVocabularyAsStored) {
  auto builder = small_vocabulary();
  builder.add("tokenizer.ggml.bos_token_id", uint32_t{1});
  builder.add("tokenizer.ggml.padding_token_id", UINT32_MAX);
  builder.add("tokenizer.ggml.add_bos_token", Builder::kBool, "\1");
  builder.add("tokenizer.chat_template", "{{ x }}");
  builder.add("tokenizer.chat_template.tool_use", "{{ y }}");
  const TextAssets assets = parse(builder);
  ASSERT_TRUE(assets.has_tokenizer());
  const GgufTokenizer& gguf = *assets.gguf;
  EXPECT_EQ(gguf.model, "gpt2");
  EXPECT_EQ(gguf.pre, "smollm");
  EXPECT_EQ(gguf.tokens, (std::vector<std::string>{"a", "\xff"}));
  EXPECT_EQ(gguf.token_types, (std::vector<int32_t>{1, 6}));
  EXPECT_EQ(gguf.scores, (std::vector<float>{0.0F, -1.5F}));
  EXPECT_EQ(gguf.merges, std::vector<std::string>{"a b"});
  EXPECT_EQ(gguf.bos_token_id, 1);
  EXPECT_EQ(gguf.eos_token_id, std::nullopt);
  EXPECT_EQ(gguf.padding_token_id, std::nullopt);
  EXPECT_EQ(gguf.add_bos_token, true);
  EXPECT_EQ(gguf.add_space_prefix, std::nullopt);
  EXPECT_EQ(assets.gguf_chat_template, "{{ x }}");
  EXPECT_EQ(assets.gguf_tool_use_template, "{{ y }}");
}

TEST(TextAssets, AreEmptyWithoutATokenizer) {
  EXPECT_FALSE(parse(Builder()).has_tokenizer());
}

TEST(TextAssets, NameTheKeyOfABrokenVocabulary) {
  const auto error = [](const Builder& builder) {
    return file_error_of([&] { parse(builder); });
  };
  EXPECT_EQ(
      error(Builder().add("tokenizer.ggml.tokens", "a")),
      "m.gguf: key tokenizer.ggml.tokens is a string, expected a list of "
      "strings");
  EXPECT_EQ(
      error(Builder().add("tokenizer.chat_template", "\xff")),
      "m.gguf: key tokenizer.chat_template is \"?\", expected UTF-8");
  EXPECT_TRUE(contains(
      error(small_vocabulary().add(
          "tokenizer.ggml.eos_token_id",
          Builder::kU64,
          raw(UINT64_MAX))),
      "key tokenizer.ggml.eos_token_id is 18446744073709551615"));
  EXPECT_TRUE(contains(
      error(small_vocabulary().add("tokenizer.ggml.add_eos_token", 1U)),
      "key tokenizer.ggml.add_eos_token is an integer"));
}

} // namespace
} // namespace sheave
