// Text to token ids and back, from a Hugging Face tokenizer.json or from the
// metadata of a GGUF file. Not a chat template (chat_template.h), and not the
// piecewise decoding of a stream (token_stream.h).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sheave/base/result.h"
#include "sheave/text/gguf_vocabulary.h"

namespace sheave {

struct EncodeOptions {
  /// Put the ids around the text that the model's files ask for (BOS, EOS).
  bool add_special = true;
  /// Read "<|im_end|>" as that token. Without it, such text is ordinary text:
  /// right for whatever comes from a user. Tokens that the model's files list
  /// as added but not as special are recognised either way.
  bool parse_special = false;
};

struct DecodeOptions {
  /// Leave out special tokens.
  bool skip_special = true;
};

/// A model's vocabulary. Const calls may come from any thread.
class Tokenizer {
 public:
  /// Reads tokenizer.json and, unless empty, tokenizer_config.json, of which
  /// only bos_token, eos_token, add_bos_token and add_eos_token count; the
  /// latter two only where the post processor says nothing. Padding,
  /// truncation and dropout are ignored.
  /// Errors: kInvalidFile names what is broken, kUnsupported what is unknown.
  static Result<Tokenizer> from_json(
      std::string_view tokenizer_json,
      std::string_view tokenizer_config_json = "");

  /// Builds the tokenizer that llama.cpp would: models "gpt2" (byte-level BPE)
  /// and "llama" (SentencePiece). Takes up to a second for 262k tokens.
  /// Errors: kInvalidFile names the token, merge or id that is broken,
  /// kUnsupported a model or pre-tokenizer that isn't known.
  static Result<Tokenizer> from_gguf(const GgufVocabulary& vocabulary);

  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;
  ~Tokenizer();

  /// The ids of `text`, which must be UTF-8 (else kInvalidArgument).
  [[nodiscard]] Result<std::vector<int32_t>> encode(
      std::string_view text,
      EncodeOptions options = {}) const;

  /// The ids of a rendered chat template: special tokens are recognised, BOS
  /// stands in front exactly once if the model wants one (many templates write
  /// it themselves), and EOS isn't appended.
  [[nodiscard]] Result<std::vector<int32_t>> encode_prompt(
      std::string_view rendered) const;

  /// The text of `ids`. Bytes that aren't UTF-8 become U+FFFD, as many as
  /// Unicode recommends; ids without a token are skipped. Equals what
  /// TokenStream gives piece by piece.
  [[nodiscard]] std::string decode(
      std::span<const int32_t> ids,
      DecodeOptions options = {}) const;

  /// What `id` stands for; not always UTF-8 by itself. Empty if there is no
  /// such token. Lives as long as the tokenizer.
  [[nodiscard]] std::string_view token_bytes(int32_t id) const;

  /// One more than the highest id. A model's logits may be wider.
  [[nodiscard]] int32_t vocab_size() const;

  /// By the vocabulary's own spelling ("Ġthe", "▁the", "<s>").
  [[nodiscard]] std::optional<int32_t> token_to_id(
      std::string_view token) const;
  [[nodiscard]] std::optional<std::string> id_to_token(int32_t id) const;

  /// True for control tokens, which skip_special leaves out.
  [[nodiscard]] bool is_special(int32_t id) const;

  [[nodiscard]] std::optional<int32_t> bos_token_id() const;
  [[nodiscard]] std::optional<int32_t> eos_token_id() const;

  /// True if encode with add_special puts BOS in front.
  [[nodiscard]] bool add_bos() const;

  /// True if decoding drops one space at the start of a text.
  [[nodiscard]] bool strips_leading_space() const;

  /// The ids after which generation ends, in ascending order: the tokenizer's
  /// own eos; `eos_token_id` (a number or a list) of generation_config.json
  /// and config.json, each "" if there is none; from a GGUF file also eot and
  /// the control tokens that are known to end a turn ("<|im_end|>",
  /// "<end_of_turn>", "<|eot_id|>", ...), because most such files name one id.
  /// Errors: kInvalidFile if a JSON is broken or holds something else.
  [[nodiscard]] Result<std::vector<int32_t>> eos_token_ids(
      std::string_view generation_config_json = "",
      std::string_view config_json = "") const;

 private:
  struct Rust;
  explicit Tokenizer(std::unique_ptr<Rust> rust);

  std::unique_ptr<Rust> rust_;
};

} // namespace sheave
