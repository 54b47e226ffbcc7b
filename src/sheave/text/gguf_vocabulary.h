// The tokenizer part of a GGUF file's metadata, as plain values. Whoever reads
// the file fills it; nothing here is checked yet (Tokenizer::from_gguf does).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sheave {

/// `tokenizer.ggml.*`; each field is empty where the file has no such key.
struct GgufVocabulary {
  std::string model; // "gpt2" or "llama"
  std::string pre;   // how byte-level BPE cuts words, e.g. "smollm"
  std::vector<std::string> tokens;
  std::vector<float> scores;
  std::vector<int32_t> token_types;
  std::vector<std::string> merges;
  std::optional<int32_t> bos_token_id;
  std::optional<int32_t> eos_token_id;
  std::optional<int32_t> eot_token_id;
  std::optional<int32_t> unknown_token_id;
  std::optional<int32_t> padding_token_id;
  std::optional<bool> add_bos_token;
  std::optional<bool> add_eos_token;
  std::optional<bool> add_space_prefix;
};

} // namespace sheave
