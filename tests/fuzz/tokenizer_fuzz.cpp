// Tokenizers from JSON and from GGUF vocabularies, and chat templates: whatever
// the bytes, an Error or something that works.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sheave/text/chat_template.h"
#include "sheave/text/token_stream.h"
#include "sheave/text/tokenizer.h"

namespace {

using sheave::ChatTemplate;
using sheave::GgufVocabulary;
using sheave::Tokenizer;
using sheave::TokenStream;

/// Encodes and decodes with whatever came out.
void use(const Tokenizer& tokenizer) {
  const auto ids = tokenizer.encode(
      "Hello <s> w\u00f6rld \U0001F469\u200D\U0001F467 12\n\n",
      {});
  if (!ids) {
    return;
  }
  TokenStream stream(tokenizer, {.stop_strings = {"lo"}});
  for (const int32_t id : *ids) {
    stream.push(id);
  }
  stream.finish();
  (void)tokenizer.decode(*ids);
  (void)tokenizer.eos_token_ids();
}

/// The next piece of the bytes, up to a newline.
std::string take_line(std::string_view& bytes) {
  const size_t end = bytes.find('\n');
  const std::string line(bytes.substr(0, end));
  bytes.remove_prefix(end == std::string_view::npos ? bytes.size() : end + 1);
  return line;
}

void fuzz_gguf(std::string_view bytes) {
  GgufVocabulary vocabulary;
  vocabulary.model = take_line(bytes);
  vocabulary.pre = take_line(bytes);
  const std::string numbers = take_line(bytes);
  const auto number = [&](size_t at) {
    return at < numbers.size() ? static_cast<int8_t>(numbers[at]) : int8_t{0};
  };
  vocabulary.bos_token_id = number(0);
  vocabulary.eos_token_id = number(1);
  vocabulary.add_bos_token = number(2) % 2 != 0;
  vocabulary.add_space_prefix = number(3) % 2 != 0;
  while (!bytes.empty()) {
    std::string line = take_line(bytes);
    if (line.starts_with("m:")) {
      vocabulary.merges.push_back(line.substr(2));
      continue;
    }
    vocabulary.scores.push_back(static_cast<float>(line.size()));
    vocabulary.token_types.push_back(
        line.empty() ? 1 : static_cast<uint8_t>(line[0]) % 8);
    vocabulary.tokens.push_back(std::move(line));
  }
  if (const auto tokenizer = Tokenizer::from_gguf(vocabulary)) {
    use(*tokenizer);
  }
}

void fuzz_template(std::string_view bytes) {
  const auto chat = ChatTemplate::from_source(bytes, "<s>", "</s>");
  if (chat) {
    (void)chat->render(
        {.messages_json = R"([{"role": "user", "content": "hi"}])"});
  }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) {
    return 0;
  }
  const std::string_view bytes(
      reinterpret_cast<const char*>(data) + 1,
      size - 1);
  switch (data[0] % 3) {
    case 0:
      if (const auto tokenizer = Tokenizer::from_json(bytes)) {
        use(*tokenizer);
      }
      break;
    case 1:
      fuzz_gguf(bytes);
      break;
    default:
      fuzz_template(bytes);
      break;
  }
  return 0;
}
