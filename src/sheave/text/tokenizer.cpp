#include "sheave/text/tokenizer.h"

#include <limits>
#include <utility>

#include "sheave/text/rust_handle.h"
#include "sheave/text/token_stream.h"

namespace sheave {

/// The Rust tokenizer and the tables that it lends us.
struct Tokenizer::Rust {
  RustTokenizer handle;
  SheaveTokenizerFacts facts;

  [[nodiscard]] bool has(int32_t id) const {
    return id >= 0 && static_cast<size_t>(id) < facts.vocab_size;
  }

  [[nodiscard]] std::span<const int32_t> prefix() const {
    return {facts.prefix, facts.prefix_len};
  }

  [[nodiscard]] std::span<const int32_t> suffix() const {
    return {facts.suffix, facts.suffix_len};
  }

  [[nodiscard]] Result<std::vector<int32_t>> encode(
      std::string_view text,
      bool parse_special) const {
    SheaveIds ids{nullptr, 0};
    return rust_call(
        [&](SheaveBytes* error) {
          return sheave_tokenizer_encode(
              handle.get(),
              rust_slice(text),
              parse_special,
              &ids,
              error);
        },
        [&] { return take_rust_ids(ids); });
  }
};

namespace {

std::vector<SheaveSlice> rust_slices(const std::vector<std::string>& texts) {
  std::vector<SheaveSlice> slices;
  slices.reserve(texts.size());
  for (const std::string& text : texts) {
    slices.push_back(rust_slice(text));
  }
  return slices;
}

template <typename T>
int64_t rust_optional(const std::optional<T>& value) {
  return value ? static_cast<int64_t>(*value) : SHEAVE_TEXT_NONE;
}

std::optional<int32_t> optional_id(int32_t id) {
  return id < 0 ? std::nullopt : std::optional(id);
}

} // namespace

Tokenizer::Tokenizer(std::unique_ptr<Rust> rust) : rust_(std::move(rust)) {}
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;
Tokenizer::~Tokenizer() = default;

Result<Tokenizer> Tokenizer::from_json(
    std::string_view tokenizer_json,
    std::string_view tokenizer_config_json) {
  SheaveTokenizer* made = nullptr;
  return rust_call(
      [&](SheaveBytes* error) {
        return sheave_tokenizer_from_json(
            rust_slice(tokenizer_json),
            rust_slice(tokenizer_config_json),
            &made,
            error);
      },
      [&] {
        auto rust = std::make_unique<Rust>(RustTokenizer(made));
        sheave_tokenizer_facts(made, &rust->facts);
        return Tokenizer(std::move(rust));
      });
}

Result<Tokenizer> Tokenizer::from_gguf(const GgufVocabulary& vocabulary) {
  const auto tokens = rust_slices(vocabulary.tokens);
  const auto merges = rust_slices(vocabulary.merges);
  const SheaveGgufVocabulary source{
      .model = rust_slice(vocabulary.model),
      .pre = rust_slice(vocabulary.pre),
      .tokens = tokens.data(),
      .token_count = tokens.size(),
      .scores = vocabulary.scores.data(),
      .score_count = vocabulary.scores.size(),
      .token_types = vocabulary.token_types.data(),
      .token_type_count = vocabulary.token_types.size(),
      .merges = merges.data(),
      .merge_count = merges.size(),
      .bos = rust_optional(vocabulary.bos_token_id),
      .eos = rust_optional(vocabulary.eos_token_id),
      .eot = rust_optional(vocabulary.eot_token_id),
      .unk = rust_optional(vocabulary.unknown_token_id),
      .pad = rust_optional(vocabulary.padding_token_id),
      .add_bos = rust_optional(vocabulary.add_bos_token),
      .add_eos = rust_optional(vocabulary.add_eos_token),
      .add_space_prefix = rust_optional(vocabulary.add_space_prefix)};
  SheaveTokenizer* made = nullptr;
  return rust_call(
      [&](SheaveBytes* error) {
        return sheave_tokenizer_from_gguf(&source, &made, error);
      },
      [&] {
        auto rust = std::make_unique<Rust>(RustTokenizer(made));
        sheave_tokenizer_facts(made, &rust->facts);
        return Tokenizer(std::move(rust));
      });
}

Result<std::vector<int32_t>> Tokenizer::encode(
    std::string_view text,
    EncodeOptions options) const {
  auto ids = rust_->encode(text, options.parse_special);
  if (ids && options.add_special) {
    const auto prefix = rust_->prefix();
    const auto suffix = rust_->suffix();
    ids->insert(ids->begin(), prefix.begin(), prefix.end());
    ids->insert(ids->end(), suffix.begin(), suffix.end());
  }
  return ids;
}

Result<std::vector<int32_t>> Tokenizer::encode_prompt(
    std::string_view rendered) const {
  auto ids = rust_->encode(rendered, /*parse_special=*/true);
  const auto bos = bos_token_id();
  if (ids && add_bos() && (ids->empty() || ids->front() != *bos)) {
    ids->insert(ids->begin(), *bos);
  }
  return ids;
}

std::string Tokenizer::decode(
    std::span<const int32_t> ids,
    DecodeOptions options) const {
  TokenStream stream(*this, {.skip_special = options.skip_special});
  std::string text;
  for (const int32_t id : ids) {
    text += stream.push(id);
  }
  return text + stream.finish();
}

std::string_view Tokenizer::token_bytes(int32_t id) const {
  if (!rust_->has(id)) {
    return {};
  }
  const uint32_t begin = rust_->facts.piece_offsets[id];
  const uint32_t end = rust_->facts.piece_offsets[id + 1];
  const auto* bytes = reinterpret_cast<const char*>(rust_->facts.piece_bytes);
  return {bytes + begin, end - begin};
}

int32_t Tokenizer::vocab_size() const {
  return static_cast<int32_t>(rust_->facts.vocab_size);
}

std::optional<int32_t> Tokenizer::token_to_id(std::string_view token) const {
  int32_t id = -1;
  const auto found = rust_call(
      [&](SheaveBytes* error) {
        return sheave_tokenizer_token_to_id(
            rust_->handle.get(),
            rust_slice(token),
            &id,
            error);
      },
      [&] { return id; });
  return optional_id(found.value_or(-1));
}

std::optional<std::string> Tokenizer::id_to_token(int32_t id) const {
  SheaveBytes token{nullptr, 0};
  auto found = rust_call(
      [&](SheaveBytes* error) {
        return sheave_tokenizer_id_to_token(
            rust_->handle.get(),
            id,
            &token,
            error);
      },
      [&] { return take_rust_bytes(token); });
  return found ? std::optional(std::move(*found)) : std::nullopt;
}

bool Tokenizer::is_special(int32_t id) const {
  return rust_->has(id) &&
         (rust_->facts.piece_flags[id] & SHEAVE_PIECE_SPECIAL) != 0;
}

std::optional<int32_t> Tokenizer::bos_token_id() const {
  return optional_id(rust_->facts.bos);
}

std::optional<int32_t> Tokenizer::eos_token_id() const {
  return optional_id(rust_->facts.eos);
}

bool Tokenizer::add_bos() const {
  const auto prefix = rust_->prefix();
  return !prefix.empty() && optional_id(prefix.front()) == bos_token_id();
}

bool Tokenizer::strips_leading_space() const {
  return rust_->facts.strip_leading_space;
}

Result<std::vector<int32_t>> Tokenizer::eos_token_ids(
    std::string_view generation_config_json,
    std::string_view config_json) const {
  SheaveIds ids{nullptr, 0};
  return rust_call(
      [&](SheaveBytes* error) {
        return sheave_tokenizer_stop_ids(
            rust_->handle.get(),
            rust_slice(generation_config_json),
            rust_slice(config_json),
            &ids,
            error);
      },
      [&] { return take_rust_ids(ids); });
}

} // namespace sheave
