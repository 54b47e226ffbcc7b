// What sampling needs of a vocabulary's logits: the best, the k best, the
// normalizing sum. Plain functions over evaluated values of one row.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace sheave::kernels {

/// A token and its logit.
struct TokenLogit {
  int32_t id;
  float logit;

  bool operator==(const TokenLogit&) const = default;
};

/// The id of the largest logit, the lowest id among equals. NaN never wins; 0
/// if every logit is NaN or minus infinity. logits: at least one.
int32_t argmax_logit(std::span<const float> logits);

/// The k largest, the largest first, the lower id among equals. Leaves out NaN
/// and minus infinity, so there may be fewer. Costs little more than argmax
/// while k is small beside the vocabulary.
std::vector<TokenLogit> top_k_logits(std::span<const float> logits, int k);

/// log(sum(exp(logit))), within 1e-5 of the exact value for up to a million
/// logits: a token's log-probability is its logit less this. NaN and minus
/// infinity count as nothing; minus infinity if that leaves nothing. The same
/// bits on every target with fused multiply-add.
float log_sum_exp(std::span<const float> logits);

/// The probabilities exp((logit - largest) / temperature), not normalized: the
/// largest has 1. NaN gives 0. out: as many as logits; temperature > 0.
void relative_probabilities(
    std::span<const float> logits,
    float temperature,
    std::span<float> out);

} // namespace sheave::kernels
