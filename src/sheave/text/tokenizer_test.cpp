#include "sheave/text/tokenizer.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <sstream>
#include <thread>

namespace sheave {
namespace {

using Ids = std::vector<int32_t>;

const std::string kFixtures = SHEAVE_SOURCE_DIR "/tests/fixtures/text/";

std::string read_file(const std::string& name) {
  std::ifstream file(kFixtures + name, std::ios::binary);
  EXPECT_TRUE(file) << name;
  return {std::istreambuf_iterator<char>(file), {}};
}

Tokenizer tiny() {
  auto made = Tokenizer::from_json(
      read_file("tiny_tokenizer.json"),
      read_file("tiny_tokenizer_config.json"));
  EXPECT_TRUE(made) << made.error().message;
  return std::move(*made);
}

GgufVocabulary pieces() {
  GgufVocabulary vocabulary;
  vocabulary.model = "llama";
  vocabulary.tokens =
      {"<unk>", "<s>", "</s>", "▁", "a", "b", "ab", "▁ab", "<|im_end|>"};
  vocabulary.token_types = {2, 3, 3, 1, 1, 1, 1, 1, 3};
  vocabulary.scores = {0, 0, 0, -3, -4, -5, -1, -2, 0};
  for (int byte = 0; byte < 256; ++byte) {
    char name[8];
    std::snprintf(name, sizeof name, "<0x%02X>", byte);
    vocabulary.tokens.emplace_back(name);
    vocabulary.token_types.push_back(6);
    vocabulary.scores.push_back(0);
  }
  return vocabulary;
}

std::string error_of(const GgufVocabulary& vocabulary) {
  const auto made = Tokenizer::from_gguf(vocabulary);
  return made ? "no error" : made.error().message;
}

std::string unhex(const std::string& hex) {
  std::string bytes;
  for (size_t i = 0; i < hex.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  }
  return bytes;
}

Ids numbers(const std::string& text) {
  std::istringstream in(text);
  return {std::istream_iterator<int32_t>(in), {}};
}

/// Each line: text as hex, ids with special tokens, ids without.
TEST(Tokenizer, GivesTheIdsThatHuggingFaceGives) {
  const Tokenizer tokenizer = tiny();
  std::istringstream lines(read_file("vectors_tiny.tsv"));
  std::string line;
  int count = 0;
  while (std::getline(lines, line)) {
    const size_t tab = line.find('\t');
    const size_t second = line.find('\t', tab + 1);
    const std::string text = unhex(line.substr(0, tab));
    const Ids special = numbers(line.substr(tab + 1, second - tab - 1));
    const Ids plain = numbers(line.substr(second + 1));
    EncodeOptions options{.add_special = false, .parse_special = true};
    EXPECT_EQ(tokenizer.encode(text, options).value(), special) << text;
    options.parse_special = false;
    EXPECT_EQ(tokenizer.encode(text, options).value(), plain) << text;
    EXPECT_EQ(tokenizer.decode(plain), text);
    ++count;
  }
  EXPECT_GE(count, 300);
}

TEST(Tokenizer, PutsBosInFrontOfAPromptExactlyOnce) {
  const Tokenizer tokenizer = tiny();
  const int32_t bos = tokenizer.bos_token_id().value();
  ASSERT_TRUE(tokenizer.add_bos());
  const Ids bare = tokenizer.encode("Hi", {.add_special = false}).value();
  Ids framed = bare;
  framed.insert(framed.begin(), bos);
  EXPECT_EQ(tokenizer.encode("Hi").value(), framed);
  EXPECT_EQ(tokenizer.encode_prompt("Hi").value(), framed);
  EXPECT_EQ(tokenizer.encode_prompt("<bos>Hi").value(), framed);
  EXPECT_EQ(tokenizer.encode_prompt("").value(), Ids{bos});
}

TEST(Tokenizer, KnowsItsTokens) {
  const Tokenizer tokenizer = tiny();
  EXPECT_EQ(tokenizer.token_to_id("<|im_end|>"), 4);
  EXPECT_EQ(tokenizer.token_to_id("no such token"), std::nullopt);
  EXPECT_EQ(tokenizer.token_to_id("\xFF"), std::nullopt);
  EXPECT_EQ(tokenizer.id_to_token(1), "<bos>");
  EXPECT_TRUE(tokenizer.is_special(0));
  const int32_t space = tokenizer.token_to_id("Ġ").value();
  EXPECT_EQ(tokenizer.token_bytes(space), " ");
  EXPECT_FALSE(tokenizer.is_special(space));
  for (const int32_t id : {-1, tokenizer.vocab_size(), INT32_MAX, INT32_MIN}) {
    EXPECT_EQ(tokenizer.token_bytes(id), "");
    EXPECT_FALSE(tokenizer.is_special(id));
    EXPECT_EQ(tokenizer.id_to_token(id), std::nullopt);
  }
  EXPECT_EQ(tokenizer.decode(Ids{1, 4}), "");
  EXPECT_EQ(
      tokenizer.decode(Ids{1, 4}, {.skip_special = false}),
      "<bos><|im_end|>");
}

TEST(Tokenizer, IsMovedAndSharedBetweenThreads) {
  Tokenizer first = tiny();
  const Tokenizer tokenizer = std::move(first);
  const Ids expected = tokenizer.encode("Hello world").value();
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 100; ++round) {
        EXPECT_EQ(tokenizer.encode("Hello world").value(), expected);
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
}

TEST(Tokenizer, ReadsSentencePieceFromGguf) {
  const auto tokenizer = Tokenizer::from_gguf(pieces());
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  EXPECT_EQ(tokenizer->encode("ab ab").value(), (Ids{1, 7, 7}));
  EXPECT_EQ(tokenizer->decode(Ids{1, 7, 7}), "ab ab");
  EXPECT_EQ(
      tokenizer->encode("é", {.add_special = false}).value(),
      (Ids{3, 9 + 0xC3, 9 + 0xA9}));
  EXPECT_EQ(tokenizer->decode(Ids{3, 9 + 0xC3, 9 + 0xA9}), "é");
}

TEST(Tokenizer, EndsAtEveryIdThatAnyFileNames) {
  const auto tokenizer = Tokenizer::from_gguf(pieces());
  ASSERT_TRUE(tokenizer);
  EXPECT_EQ(tokenizer->eos_token_ids().value(), (Ids{2, 8}));
  EXPECT_EQ(
      tokenizer
          ->eos_token_ids(
              R"({"eos_token_id": [5, 8]})",
              R"({"eos_token_id": 4})")
          .value(),
      (Ids{2, 4, 5, 8}));
  EXPECT_EQ(tiny().eos_token_ids().value(), (Ids{2}));
  const auto broken = tokenizer->eos_token_ids(R"({"eos_token_id": "x"})");
  ASSERT_FALSE(broken);
  EXPECT_EQ(broken.error().code, ErrorCode::kInvalidFile);
  EXPECT_NE(
      broken.error().message.find("generation_config"),
      std::string::npos);
}

TEST(Tokenizer, NamesWhatIsBrokenInAFile) {
  GgufVocabulary vocabulary = pieces();
  vocabulary.tokens[4] = "\xC3";
  EXPECT_EQ(error_of(vocabulary), "token 4 isn't UTF-8");
  vocabulary = pieces();
  vocabulary.bos_token_id = 1 << 30;
  EXPECT_EQ(
      error_of(vocabulary),
      "bos token id 1073741824 is outside the vocabulary of 265");
  vocabulary = pieces();
  vocabulary.tokens[5] = "a";
  EXPECT_EQ(error_of(vocabulary), "tokens 4 and 5 are both \"a\"");
  EXPECT_EQ(error_of({}), "tokenizer.ggml.tokens is empty");
  vocabulary = pieces();
  vocabulary.model = "rwkv";
  EXPECT_NE(error_of(vocabulary).find("rwkv"), std::string::npos);

  const auto broken = Tokenizer::from_json("{\"model\": ");
  ASSERT_FALSE(broken);
  EXPECT_EQ(broken.error().code, ErrorCode::kInvalidFile);
  EXPECT_FALSE(Tokenizer::from_json("{\"model\": {}}"));
  EXPECT_FALSE(Tokenizer::from_json(std::string(100000, '[')));
  EXPECT_FALSE(Tokenizer::from_json(""));
}

TEST(Tokenizer, RefusesTextThatIsNotUtf8) {
  const auto ids = tiny().encode("ab\xFF");
  ASSERT_FALSE(ids);
  EXPECT_EQ(ids.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(ids.error().message, "the text isn't UTF-8 (at byte 2)");
}

} // namespace
} // namespace sheave
