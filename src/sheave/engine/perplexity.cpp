#include "sheave/engine/perplexity.h"

#include <mlx/ops.h>
#include <mlx/transforms.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

namespace sheave {
namespace {

/// Rows of logits computed at once: bounds the memory that a large vocabulary
/// takes.
constexpr int kHeadRows = 32;

mx::array token_array(std::span<const int32_t> tokens) {
  return mx::array(tokens.begin(), {static_cast<int>(tokens.size())});
}

/// Sum of -log p(target) over rows. hidden: [N, hidden_size], targets: [N].
double negative_log_likelihood(
    const Model& model,
    const mx::array& hidden,
    std::span<const int32_t> targets) {
  double sum = 0;
  const int rows = hidden.shape(0);
  for (int begin = 0; begin < rows; begin += kHeadRows) {
    const int end = std::min(rows, begin + kHeadRows);
    const mx::array logits =
        model.logits(mx::slice(hidden, {begin, 0}, {end, hidden.shape(1)}));
    const mx::array ids = mx::reshape(
        token_array(targets.subspan(
            static_cast<size_t>(begin),
            static_cast<size_t>(end - begin))),
        {end - begin, 1});
    const mx::array losses = mx::subtract(
        mx::logsumexp(logits, 1, true),
        mx::take_along_axis(logits, ids, 1));
    mx::array total = mx::sum(losses);
    sum += total.item<float>();
  }
  return sum;
}

Result<void>
check_request(const ModelConfig& config, int context, size_t tokens) {
  if (context < 4 || context > config.max_position_embeddings) {
    return fail(
        ErrorCode::kInvalidArgument,
        "a perplexity context of " + std::to_string(context) +
            " tokens is outside 4.." +
            std::to_string(config.max_position_embeddings));
  }
  const size_t needed = 2 * static_cast<size_t>(context);
  if (tokens < needed) {
    return fail(
        ErrorCode::kInvalidArgument,
        "the text has " + std::to_string(tokens) + " tokens; a context of " +
            std::to_string(context) + " needs at least " +
            std::to_string(needed));
  }
  return {};
}

} // namespace

Result<Perplexity> perplexity(
    const LanguageModel& language_model,
    const std::string& text,
    const PerplexityOptions& options) {
  const Model& model = language_model.model();
  const auto tokens = language_model.encode(text);
  if (!tokens) {
    return tl::unexpected(tokens.error());
  }
  const int context = options.context_tokens;
  if (const auto ok = check_request(model.config(), context, tokens->size());
      !ok) {
    return tl::unexpected(ok.error());
  }
  const auto size = static_cast<size_t>(context);
  const int chunks = static_cast<int>(tokens->size() / size);
  const int first = context / 2; // logits from here on are scored
  Perplexity result;
  double loss = 0;
  for (int chunk = 0; chunk < chunks; ++chunk) {
    std::vector<int32_t> ids(
        tokens->begin() + chunk * context,
        tokens->begin() + (chunk + 1) * context);
    const auto bos = language_model.tokenizer().bos_token_id();
    if (language_model.tokenizer().add_bos() && bos) {
      ids[0] = *bos;
    }
    LayerCaches caches = model.make_caches({.dtype = options.cache_dtype});
    const mx::array hidden =
        model.forward(token_array(ids), StepLayout::single(0, context), caches);
    loss += negative_log_likelihood(
        model,
        mx::slice(hidden, {first, 0}, {context - 1, hidden.shape(1)}),
        std::span<const int32_t>(ids).subspan(static_cast<size_t>(first) + 1));
    result.tokens += context - 1 - first;
    result.chunks = chunk + 1;
    result.perplexity = std::exp(loss / result.tokens);
    if (options.on_chunk) {
      options.on_chunk(result.chunks, chunks, result.perplexity);
    }
  }
  return result;
}

} // namespace sheave
