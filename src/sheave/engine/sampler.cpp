#include "sheave/engine/sampler.h"

#include <algorithm>

#include "sheave/base/check.h"
#include "sheave/kernels/logits/logits.h"

namespace sheave {
Sampler::Sampler(const SamplingParams& params)
    : params_(params), random_(params.seed) {}

double Sampler::uniform() {
  return static_cast<double>(random_() >> 11) * 0x1.0p-53;
}

// Fills candidates_ with the tokens that may be drawn, the most likely first,
// and their unnormalized probabilities relative to the best.
void Sampler::restrict_candidates(std::span<const float> logits) {
  probabilities_.resize(logits.size());
  kernels::relative_probabilities(logits, params_.temperature, probabilities_);
  candidates_.clear();
  double total = 0;
  for (size_t i = 0; i < logits.size(); ++i) {
    if (probabilities_[i] > 0) {
      candidates_.push_back({static_cast<int32_t>(i), probabilities_[i]});
      total += probabilities_[i];
    }
  }
  const auto likelier = [](const Candidate& a, const Candidate& b) {
    return a.probability != b.probability ? a.probability > b.probability
                                          : a.id < b.id;
  };
  const bool top_k = params_.top_k > 0 &&
                     static_cast<size_t>(params_.top_k) < candidates_.size();
  if (top_k) {
    const auto kept = candidates_.begin() + params_.top_k;
    std::partial_sort(candidates_.begin(), kept, candidates_.end(), likelier);
    candidates_.erase(kept, candidates_.end());
    total = 0;
    for (const Candidate& candidate : candidates_) {
      total += candidate.probability;
    }
  } else if (params_.top_p < 1) {
    std::sort(candidates_.begin(), candidates_.end(), likelier);
  }
  if (params_.top_p < 1) {
    double sum = 0;
    size_t count = 0;
    while (count < candidates_.size() && sum < params_.top_p * total) {
      sum += candidates_[count++].probability;
    }
    candidates_.resize(std::max<size_t>(count, 1));
  }
  if (params_.min_p > 0) { // relative to the best, whose probability is 1
    std::erase_if(candidates_, [&](const Candidate& candidate) {
      return candidate.probability < params_.min_p;
    });
  }
}

int32_t Sampler::sample(std::span<const float> logits) {
  SHEAVE_CHECK(!logits.empty(), "no logits to sample from");
  if (params_.temperature == 0) {
    return kernels::argmax_logit(logits);
  }
  restrict_candidates(logits);
  if (candidates_.empty()) { // every logit is NaN or minus infinity
    return kernels::argmax_logit(logits);
  }
  double total = 0;
  for (const Candidate& candidate : candidates_) {
    total += candidate.probability;
  }
  double rest = uniform() * total;
  for (const Candidate& candidate : candidates_) {
    rest -= candidate.probability;
    if (rest < 0) {
      return candidate.id;
    }
  }
  return candidates_.back().id;
}

} // namespace sheave
