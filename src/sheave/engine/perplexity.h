// Perplexity of a text under a model, by llama.cpp's method, so that figures
// can be compared.
#pragma once

#include <functional>
#include <string>

#include "sheave/base/result.h"
#include "sheave/engine/language_model.h"

namespace sheave {

/// context_tokens: length of a chunk. on_chunk: called after each chunk with
/// chunks done, chunks in all, and the perplexity so far.
struct PerplexityOptions {
  int context_tokens = 512;
  mx::Dtype cache_dtype = mx::float16;
  std::function<void(int done, int total, double perplexity)> on_chunk;
};

/// tokens: how many were scored.
struct Perplexity {
  double perplexity = 0;
  int tokens = 0;
  int chunks = 0;
};

/// Cuts the text's tokens into chunks of context_tokens, each computed with
/// empty caches (its first token replaced by BOS where the tokenizer adds
/// one), and scores the second half of each: exp of the mean negative log
/// likelihood. A last partial chunk is left out.
/// Fails with kInvalidArgument for a context below 4, above the model's, or a
/// text of fewer than two chunks.
/// Source: llama.cpp tools/perplexity, method of the default run.
Result<Perplexity> perplexity(
    const LanguageModel& language_model,
    const std::string& text,
    const PerplexityOptions& options);

} // namespace sheave
