#include "sheave/models/rope_frequencies.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

namespace sheave {
namespace {

/// theta^(-2i / dims), in double: the scalings below start from it.
std::vector<double> base_frequencies(double theta, int dims) {
  std::vector<double> result(static_cast<size_t>(dims / 2));
  for (size_t i = 0; i < result.size(); ++i) {
    result[i] = std::pow(theta, -2.0 * static_cast<double>(i) / dims);
  }
  return result;
}

/// Long waves are stretched by the factor, short ones kept, those between
/// blended.
double llama3_frequency(const RopeParameters& p, double frequency) {
  const double context = p.original_max_position_embeddings;
  const double wavelength = 2 * std::numbers::pi / frequency;
  if (wavelength > context / p.low_freq_factor) {
    return frequency / p.factor;
  }
  if (wavelength < context / p.high_freq_factor) {
    return frequency;
  }
  const double smooth = (context / wavelength - p.low_freq_factor) /
                        (p.high_freq_factor - p.low_freq_factor);
  return (1 - smooth) * frequency / p.factor + smooth * frequency;
}

/// The pair index whose wave turns `rotations` times within the context.
double yarn_correction(const RopeParameters& p, int dims, double rotations) {
  return dims *
         std::log(
             p.original_max_position_embeddings /
             (rotations * 2 * std::numbers::pi)) /
         (2 * std::log(p.theta));
}

void scale_yarn(
    const RopeParameters& p,
    int dims,
    std::vector<double>& frequencies) {
  double low = yarn_correction(p, dims, p.beta_fast);
  double high = yarn_correction(p, dims, p.beta_slow);
  if (p.truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, dims - 1.0);
  if (low == high) {
    high += 0.001; // a step instead of a ramp of no width
  }
  for (size_t i = 0; i < frequencies.size(); ++i) {
    const double ramp =
        std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
    frequencies[i] *= ramp / p.factor + (1 - ramp);
  }
}

double yarn_mscale(double factor, double mscale) {
  return factor <= 1 ? 1 : 0.1 * mscale * std::log(factor) + 1;
}

double yarn_attention_factor(const RopeParameters& p) {
  if (p.attention_factor) {
    return *p.attention_factor;
  }
  if (p.mscale && p.mscale_all_dim) {
    return yarn_mscale(p.factor, *p.mscale) /
           yarn_mscale(p.factor, *p.mscale_all_dim);
  }
  return yarn_mscale(p.factor, 1);
}

} // namespace

RopeFrequencies rope_frequencies(
    const RopeParameters& parameters,
    int head_dim) {
  const RopeParameters& p = parameters;
  const int dims =
      static_cast<int>(head_dim * static_cast<double>(p.partial_rotary_factor));
  std::vector<double> frequencies = base_frequencies(p.theta, dims);
  RopeFrequencies result;
  switch (p.type) {
    case RopeType::kDefault:
      break;
    case RopeType::kLinear:
      for (double& frequency : frequencies) {
        frequency /= p.factor;
      }
      break;
    case RopeType::kLlama3:
      for (double& frequency : frequencies) {
        frequency = llama3_frequency(p, frequency);
      }
      break;
    case RopeType::kYarn:
      scale_yarn(p, dims, frequencies);
      result.attention_factor = static_cast<float>(yarn_attention_factor(p));
      break;
  }
  result.inv_freq.assign(frequencies.begin(), frequencies.end());
  result.traditional = p.traditional;
  return result;
}

} // namespace sheave
