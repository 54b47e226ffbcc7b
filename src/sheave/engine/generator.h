// Generator: one conversation with a model. Keeps the caches between calls and
// recomputes only what a new prompt does not share with what it holds.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sheave/base/result.h"
#include "sheave/engine/language_model.h"
#include "sheave/engine/sampler.h"

namespace sheave {

/// Tokens of a prompt that are computed at once; an answer can be cancelled
/// between two chunks.
inline constexpr size_t kPrefillChunk = 512;

/// Limits and choices of one answer. max_tokens < 0: until the context is
/// full.
struct GenerationOptions {
  SamplingParams sampling;
  int max_tokens = -1;
  std::vector<std::string> stop;
  bool ignore_eos = false;
};

/// Why an answer ended.
enum class FinishReason {
  kEos,         // the model said so
  kStop,        // a stop string came up; it isn't part of the text
  kLength,      // max_tokens
  kContextFull, // no room for another token
  kCancelled,   // the caller gave up
};

/// The reason as scripts see it: "stop", "length" or "cancelled".
const char* finish_reason_name(FinishReason reason);

/// Figures of one answer. cached_tokens: how many of the prompt's tokens came
/// from the caches.
struct GenerationStats {
  int prompt_tokens = 0;
  int cached_tokens = 0;
  int generated_tokens = 0;
  double prompt_seconds = 0;     // until the first token could be chosen
  double generation_seconds = 0; // from then to the last token

  /// 0 where nothing was computed.
  double prompt_tokens_per_second() const;
  double generation_tokens_per_second() const;
};

/// One answer. tokens: the generated ids, the EOS that ended them not
/// included.
struct Generation {
  std::vector<int32_t> tokens;
  std::string text;
  FinishReason finish_reason = FinishReason::kLength;
  GenerationStats stats;
};

/// Called with each new piece of text: whole characters, never taken back.
using TextCallback = std::function<void(std::string_view text)>;

/// See above. Belongs to one thread.
class Generator {
 public:
  /// The model must outlive the generator.
  Generator(const LanguageModel& language_model, const CacheOptions& caches);

  /// Answers a prompt given whole, its earlier turns included.
  /// cancel: set by another thread or a signal handler; the answer stops after
  /// the token under way, and the next call goes on from there.
  /// Fails with kContextFull, naming both numbers, if the prompt leaves no
  /// room for a token, and with kInvalidArgument for an empty prompt or an id
  /// outside the vocabulary.
  Result<Generation> generate(
      std::span<const int32_t> prompt,
      const GenerationOptions& options,
      const TextCallback& on_text = nullptr,
      const std::atomic<bool>* cancel = nullptr);

 private:
  int reuse_prefix(std::span<const int32_t> prompt);
  void step(std::span<const int32_t> tokens, std::vector<float>* logits);
  bool prefill(
      std::span<const int32_t> prompt,
      const std::atomic<bool>* cancel,
      std::vector<float>& logits);
  void decode(
      const GenerationOptions& options,
      const TextCallback& on_text,
      const std::atomic<bool>* cancel,
      std::vector<float>& logits,
      Generation& result);
  void reset();

  const LanguageModel& language_model_;
  CacheOptions cache_options_;
  LayerCaches caches_;
  std::vector<int32_t> cached_tokens_; // what the caches hold, in order
};

} // namespace sheave
