#include "sheave/engine/generator.h"

#include <mlx/ops.h>
#include <mlx/transforms.h>

#include <algorithm>
#include <chrono>
#include <cstring>

#include "sheave/text/token_stream.h"

namespace sheave {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double per_second(int count, double seconds) {
  return count > 0 && seconds > 0 ? count / seconds : 0;
}

bool is_set(const std::atomic<bool>* flag) {
  return flag != nullptr && flag->load();
}

Result<void> check_prompt(
    std::span<const int32_t> prompt,
    const ModelConfig& config) {
  if (prompt.empty()) {
    return fail(ErrorCode::kInvalidArgument, "the prompt has no tokens");
  }
  const auto context = static_cast<size_t>(config.max_position_embeddings);
  if (prompt.size() >= context) {
    return fail(
        ErrorCode::kContextFull,
        "the prompt has " + std::to_string(prompt.size()) +
            " tokens, which leaves no room in the model's context of " +
            std::to_string(context));
  }
  for (const int32_t id : prompt) {
    if (id < 0 || id >= config.vocab_size) {
      return fail(
          ErrorCode::kInvalidArgument,
          "token id " + std::to_string(id) + " is outside the vocabulary of " +
              std::to_string(config.vocab_size));
    }
  }
  return {};
}

} // namespace

const char* finish_reason_name(FinishReason reason) {
  switch (reason) {
    case FinishReason::kEos:
    case FinishReason::kStop:
      return "stop";
    case FinishReason::kLength:
    case FinishReason::kContextFull:
      return "length";
    case FinishReason::kCancelled:
      return "cancelled";
  }
  return "unknown";
}

double GenerationStats::prompt_tokens_per_second() const {
  return per_second(prompt_tokens - cached_tokens, prompt_seconds);
}

double GenerationStats::generation_tokens_per_second() const {
  // The first token belongs to the prompt's time: n tokens take n - 1 steps.
  return per_second(generated_tokens - 1, generation_seconds);
}

Generator::Generator(
    const LanguageModel& language_model,
    const CacheOptions& caches)
    : language_model_(language_model),
      cache_options_(caches),
      caches_(language_model.model().make_caches(caches)) {}

void Generator::reset() {
  caches_ = language_model_.model().make_caches(cache_options_);
  cached_tokens_.clear();
}

// Cuts the caches back to what they share with the prompt, its last token
// excepted (its logits are needed); starts anew where a cache can't go back.
// Returns how many tokens stay.
int Generator::reuse_prefix(std::span<const int32_t> prompt) {
  const auto limit = std::min(cached_tokens_.size(), prompt.size() - 1);
  size_t shared = 0;
  while (shared < limit && cached_tokens_[shared] == prompt[shared]) {
    ++shared;
  }
  const int surplus = static_cast<int>(cached_tokens_.size() - shared);
  if (surplus == 0) {
    return static_cast<int>(shared);
  }
  if (!trimmable(caches_) || shared == 0) {
    reset();
    return 0;
  }
  trim(caches_, surplus);
  cached_tokens_.resize(shared);
  return static_cast<int>(shared);
}

// Appends tokens to the conversation; where `logits` is given, it gets those
// of the last token. One evaluation either way. A step that fails drops the
// caches, which may be half written.
void Generator::step(
    std::span<const int32_t> tokens,
    std::vector<float>* logits) {
  try {
    const int count = static_cast<int>(tokens.size());
    const Model& model = language_model_.model();
    const mx::array hidden = model.forward(
        mx::array(tokens.begin(), {count}),
        StepLayout::single(static_cast<int>(cached_tokens_.size()), count),
        caches_);
    if (logits == nullptr) {
      mx::eval(hidden);
    } else {
      const int last = count - 1;
      mx::array row = model.logits(
          count == 1 ? hidden
                     : mx::slice(hidden, {last, 0}, {count, hidden.shape(1)}));
      row.eval();
      logits->resize(row.size());
      std::memcpy(logits->data(), row.data<float>(), row.nbytes());
    }
    cached_tokens_.insert(cached_tokens_.end(), tokens.begin(), tokens.end());
  } catch (...) {
    reset();
    throw;
  }
}

// Computes what of the prompt isn't cached; false if cancelled on the way.
bool Generator::prefill(
    std::span<const int32_t> prompt,
    const std::atomic<bool>* cancel,
    std::vector<float>& logits) {
  while (cached_tokens_.size() < prompt.size()) {
    if (is_set(cancel)) {
      return false;
    }
    const size_t done = cached_tokens_.size();
    const size_t count = std::min(kPrefillChunk, prompt.size() - done);
    const bool last = done + count == prompt.size();
    step(prompt.subspan(done, count), last ? &logits : nullptr);
  }
  return true;
}

// Chooses tokens one after another until something ends the answer. logits are
// those of the prompt's last token.
void Generator::decode(
    const GenerationOptions& options,
    const TextCallback& on_text,
    const std::atomic<bool>* cancel,
    std::vector<float>& logits,
    Generation& result) {
  Sampler sampler(options.sampling);
  TokenStream stream(
      language_model_.tokenizer(),
      {.stop_strings = options.stop});
  const auto show = [&](const std::string& text) {
    result.text += text;
    if (on_text && !text.empty()) {
      on_text(text);
    }
  };
  const auto& eos = language_model_.eos_token_ids();
  const auto context = static_cast<size_t>(
      language_model_.model().config().max_position_embeddings);
  for (;;) {
    if (is_set(cancel)) {
      result.finish_reason = FinishReason::kCancelled;
      break;
    }
    const int32_t token = sampler.sample(logits);
    if (!options.ignore_eos &&
        std::binary_search(eos.begin(), eos.end(), token)) {
      result.finish_reason = FinishReason::kEos;
      break;
    }
    result.tokens.push_back(token);
    show(stream.push(token));
    if (stream.stopped()) {
      result.finish_reason = FinishReason::kStop;
      break;
    }
    if (static_cast<int>(result.tokens.size()) == options.max_tokens) {
      result.finish_reason = FinishReason::kLength;
      break;
    }
    if (cached_tokens_.size() + 1 >= context) {
      result.finish_reason = FinishReason::kContextFull;
      break;
    }
    step({&token, 1}, &logits);
  }
  show(stream.finish());
}

Result<Generation> Generator::generate(
    std::span<const int32_t> prompt,
    const GenerationOptions& options,
    const TextCallback& on_text,
    const std::atomic<bool>* cancel) {
  const ModelConfig& config = language_model_.model().config();
  if (const auto ok = check_prompt(prompt, config); !ok) {
    return tl::unexpected(ok.error());
  }
  Generation result;
  GenerationStats& stats = result.stats;
  const auto start = Clock::now();
  stats.prompt_tokens = static_cast<int>(prompt.size());
  stats.cached_tokens = reuse_prefix(prompt);
  std::vector<float> logits;
  if (!prefill(prompt, cancel, logits)) {
    result.finish_reason = FinishReason::kCancelled;
    return result;
  }
  stats.prompt_seconds = seconds_since(start);
  const auto first_token = Clock::now();
  decode(options, on_text, cancel, logits, result);
  stats.generated_tokens = static_cast<int>(result.tokens.size());
  stats.generation_seconds = seconds_since(first_token);
  return result;
}

} // namespace sheave
