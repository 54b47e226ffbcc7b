// Sampling: from one position's logits to the next token. Per request: its own
// parameters, its own random stream.
#pragma once

#include <cstdint>
#include <random>
#include <span>
#include <vector>

namespace sheave {

/// How the next token is chosen. temperature 0 takes the most likely token
/// and the rest is ignored. top_k 0, top_p 1 and min_p 0 mean "no limit".
struct SamplingParams {
  float temperature = 0.0F;
  float top_p = 1.0F;
  int top_k = 0;
  float min_p = 0.0F;
  uint64_t seed = 0;
};

/// Draws tokens for one request. The same seed and logits give the same
/// tokens on every machine that has fused multiply-add.
class Sampler {
 public:
  explicit Sampler(const SamplingParams& params);

  /// logits: [V] float32, V >= 1. Applies temperature, then keeps the top_k
  /// most likely tokens, of these the smallest set whose probability reaches
  /// top_p, of these the ones at least min_p times as likely as the best, and
  /// draws. Ties go to the lower id. A NaN counts as minus infinity.
  int32_t sample(std::span<const float> logits);

 private:
  struct Candidate {
    int32_t id;
    float probability;
  };

  void restrict_candidates(std::span<const float> logits);
  double uniform();

  SamplingParams params_;
  std::mt19937_64 random_;
  std::vector<float> probabilities_;
  std::vector<Candidate> candidates_;
};

} // namespace sheave
