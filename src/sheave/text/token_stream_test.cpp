#include "sheave/text/token_stream.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <random>

#include "sheave/text/tokenizer.h"

namespace sheave {
namespace {

using Ids = std::vector<int32_t>;

std::string read_file(const std::string& name) {
  std::ifstream file(
      SHEAVE_SOURCE_DIR "/tests/fixtures/text/" + name,
      std::ios::binary);
  EXPECT_TRUE(file) << name;
  return {std::istreambuf_iterator<char>(file), {}};
}

Tokenizer byte_level() {
  auto made = Tokenizer::from_json(read_file("tiny_tokenizer.json"));
  EXPECT_TRUE(made) << made.error().message;
  return std::move(*made);
}

/// 0 is special, 1..256 are the bytes, then texts; a first space is dropped.
Tokenizer byte_fallback() {
  GgufVocabulary vocabulary;
  vocabulary.model = "llama";
  vocabulary.tokens = {"<unk>"};
  vocabulary.token_types = {2};
  for (int byte = 0; byte < 256; ++byte) {
    char name[8];
    std::snprintf(name, sizeof name, "<0x%02X>", byte);
    vocabulary.tokens.emplace_back(name);
    vocabulary.token_types.push_back(6);
  }
  for (const char* text :
       {"▁", "▁a", "b", "é", "世", "😀", "ab", "stop", "▁▁"}) {
    vocabulary.tokens.emplace_back(text);
    vocabulary.token_types.push_back(1);
  }
  vocabulary.scores.resize(vocabulary.tokens.size());
  vocabulary.unknown_token_id = 0;
  auto made = Tokenizer::from_gguf(vocabulary);
  EXPECT_TRUE(made) << made.error().message;
  return std::move(*made);
}

int32_t byte_id(uint8_t byte) {
  return 1 + byte;
}

/// The obvious way: all bytes first, then characters by trial from the front.
std::string reference_decode(const Tokenizer& tokenizer, const Ids& ids) {
  std::string bytes;
  for (const int32_t id : ids) {
    if (!tokenizer.is_special(id)) {
      bytes += tokenizer.token_bytes(id);
    }
  }
  if (tokenizer.strips_leading_space() && bytes.starts_with(' ')) {
    bytes.erase(0, 1);
  }
  return take_utf8(bytes, /*final=*/true);
}

bool is_whole_utf8(std::string text) {
  const std::string before = text;
  return take_utf8(text, /*final=*/false) == before;
}

void expect_stream_equals_decode(const Tokenizer& tokenizer, uint32_t seed) {
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  Ids ids(random() % 40);
  for (int32_t& id : ids) {
    id = static_cast<int32_t>(random() % (tokenizer.vocab_size() + 3)) - 1;
  }
  TokenStream stream(tokenizer);
  std::string text;
  for (const int32_t id : ids) {
    const std::string piece = stream.push(id);
    EXPECT_TRUE(is_whole_utf8(piece));
    text += piece;
  }
  text += stream.finish();
  EXPECT_EQ(text, tokenizer.decode(ids));
  EXPECT_EQ(text, reference_decode(tokenizer, ids));
}

TEST(TokenStream, GivesInPiecesWhatDecodeGivesAtOnce) {
  const Tokenizer bytes = byte_level();
  const Tokenizer fallback = byte_fallback();
  for (uint32_t seed = 0; seed < 2000; ++seed) {
    expect_stream_equals_decode(bytes, seed);
    expect_stream_equals_decode(fallback, seed);
  }
}

TEST(TokenStream, WaitsForTheRestOfACharacter) {
  const Tokenizer tokenizer = byte_fallback();
  TokenStream stream(tokenizer);
  EXPECT_EQ(stream.push(byte_id(0xF0)), "");
  EXPECT_EQ(stream.push(byte_id(0x9F)), "");
  EXPECT_EQ(stream.push(byte_id(0x98)), "");
  EXPECT_EQ(stream.push(byte_id(0x80)), "😀");
  EXPECT_EQ(stream.push(byte_id(0xE4)), "");
  EXPECT_EQ(stream.push(byte_id('x')), "\uFFFDx");
  EXPECT_EQ(stream.push(byte_id(0xE4)), "");
  EXPECT_EQ(stream.finish(), "\uFFFD");
}

/// Every string of up to four bytes out of the ones where the rules change.
TEST(TakeUtf8, DoesWithEveryBoundaryWhatUnicodeRecommends) {
  std::string bytes = "\xF0\x80\x80\x41";
  EXPECT_EQ(take_utf8(bytes, true), "\uFFFD\uFFFD\uFFFDA");
  bytes = "\xED\xA0\x80"; // a surrogate
  EXPECT_EQ(take_utf8(bytes, true), "\uFFFD\uFFFD\uFFFD");
  bytes = "\xF4\x90\x80\x80"; // beyond U+10FFFF
  EXPECT_EQ(take_utf8(bytes, true), "\uFFFD\uFFFD\uFFFD\uFFFD");
  bytes = "\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41";
  EXPECT_EQ(take_utf8(bytes, true), "\uFFFD\uFFFD\uFFFD\uFFFDA");
  bytes = "\xC0\xAF\xC1\xBF\xFE\xFF";
  EXPECT_EQ(take_utf8(bytes, false).size(), 3 * 6U);
  bytes = "a\xE2\x82";
  EXPECT_EQ(take_utf8(bytes, false), "a");
  EXPECT_EQ(bytes, "\xE2\x82");
  bytes = "\xF4\x8F\xBF\xBF\xED\x9F\xBF\xEE\x80\x80\xDF\xBF";
  const std::string valid = bytes;
  EXPECT_EQ(take_utf8(bytes, false), valid);
}

TEST(TokenStream, DropsOneLeadingSpaceOnly) {
  const Tokenizer tokenizer = byte_fallback();
  const int32_t space_a = tokenizer.token_to_id("▁a").value();
  const int32_t two = tokenizer.token_to_id("▁▁").value();
  EXPECT_EQ(tokenizer.decode(Ids{0, space_a, space_a}), "a a");
  EXPECT_EQ(tokenizer.decode(Ids{two, space_a}), "  a");
  EXPECT_EQ(tokenizer.decode(Ids{byte_id(' '), space_a}), " a");
  EXPECT_EQ(tokenizer.decode(Ids{byte_id('x'), space_a}), "x a");
}

TEST(TokenStream, StopsBeforeAStopString) {
  const Tokenizer tokenizer = byte_fallback();
  TokenStream stream(tokenizer, {.stop_strings = {"", "END", "stop"}});
  EXPECT_EQ(stream.push(byte_id('E')), "");
  EXPECT_EQ(stream.push(byte_id('N')), "");
  EXPECT_EQ(stream.push(byte_id('E')), "EN");
  EXPECT_EQ(stream.push(byte_id('N')), "");
  EXPECT_FALSE(stream.stopped());
  EXPECT_EQ(stream.push(byte_id('D')), "");
  EXPECT_TRUE(stream.stopped());
  EXPECT_EQ(stream.stop_string(), "END");
  EXPECT_EQ(stream.push(byte_id('x')), "");
  EXPECT_EQ(stream.finish(), "");
}

TEST(TokenStream, TakesTheStopStringThatComesFirst) {
  const Tokenizer tokenizer = byte_fallback();
  TokenStream stream(tokenizer, {.stop_strings = {"op", "st"}});
  EXPECT_EQ(stream.push(byte_id('x')), "x");
  EXPECT_EQ(stream.push(tokenizer.token_to_id("stop").value()), "");
  EXPECT_EQ(stream.stop_string(), "st");
}

TEST(TokenStream, GivesOutAnUnfinishedStopStringAtTheEnd) {
  const Tokenizer tokenizer = byte_fallback();
  TokenStream stream(tokenizer, {.stop_strings = {"\n\n"}});
  EXPECT_EQ(stream.push(byte_id('a')), "a");
  EXPECT_EQ(stream.push(byte_id('\n')), "");
  EXPECT_EQ(stream.finish(), "\n");
  EXPECT_FALSE(stream.stopped());
}

/// What came out must be the text up to the first stop string, for any cut.
TEST(TokenStream, NeverTakesTextBack) {
  const Tokenizer tokenizer = byte_fallback();
  const std::vector<std::string> stops = {"aab", "abab", "ba a", "éa"};
  for (uint32_t seed = 0; seed < 2000; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    const std::string letters[] = {"a", "b", " ", "é", "ab"};
    std::string whole = "x";
    TokenStream stream(tokenizer, {.stop_strings = stops});
    std::string text = stream.push(byte_id('x'));
    for (int i = 0; i < 20; ++i) {
      for (const char byte : letters[random() % 5]) {
        whole += byte;
        text += stream.push(byte_id(static_cast<uint8_t>(byte)));
      }
    }
    text += stream.finish();
    size_t end = whole.size();
    for (const std::string& stop : stops) {
      end = std::min(end, whole.find(stop));
    }
    EXPECT_EQ(text, whole.substr(0, end));
    EXPECT_EQ(stream.stopped(), end < whole.size());
  }
}

} // namespace
} // namespace sheave
