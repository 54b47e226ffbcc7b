#include "sheave/kernels/logits/logits.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "sheave/base/check.h"
#include "sheave/kernels/runtime.h"

namespace sheave::kernels {
namespace {

constexpr float kLowest = -std::numeric_limits<float>::infinity();

/// The best first; the lower id among equals.
bool better(const TokenLogit& a, const TokenLogit& b) {
  return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
}

int size_of(std::span<const float> logits) {
  return static_cast<int>(logits.size());
}

/// A finite lower limit that minus infinity doesn't reach.
constexpr float kLowestFinite = std::numeric_limits<float>::lowest();

} // namespace

int32_t argmax_logit(std::span<const float> logits) {
  SHEAVE_CHECK(!logits.empty(), "no logits");
  const KernelTable& table = decoding_table();
  const float best = table.largest_logit(logits.data(), size_of(logits));
  if (best == kLowest) {
    return 0;
  }
  int32_t index = 0;
  int next = 0;
  table.find_logits(logits.data(), size_of(logits), best, 1, &index, &next);
  return index;
}

std::vector<TokenLogit> top_k_logits(std::span<const float> logits, int k) {
  std::vector<TokenLogit> heap; // the worst on top
  if (k <= 0) {
    return heap;
  }
  const KernelTable& table = decoding_table();
  const auto capacity = static_cast<size_t>(k);
  std::array<int32_t, 256> found = {};
  float threshold = kLowestFinite;
  for (int begin = 0; begin < size_of(logits);) {
    int next = 0;
    const int count = table.find_logits(
        logits.data() + begin,
        size_of(logits) - begin,
        threshold,
        static_cast<int>(found.size()),
        found.data(),
        &next);
    for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
      const int32_t id = begin + found[i];
      const TokenLogit entry = {id, logits[static_cast<size_t>(id)]};
      if (heap.size() < capacity) {
        heap.push_back(entry);
        std::push_heap(heap.begin(), heap.end(), better);
      } else if (better(entry, heap.front())) {
        std::pop_heap(heap.begin(), heap.end(), better);
        heap.back() = entry;
        std::push_heap(heap.begin(), heap.end(), better);
      }
    }
    if (heap.size() == capacity) {
      threshold = heap.front().logit;
    }
    begin += next;
  }
  std::sort_heap(heap.begin(), heap.end(), better);
  return heap;
}

float log_sum_exp(std::span<const float> logits) {
  const KernelTable& table = decoding_table();
  const float best = table.largest_logit(logits.data(), size_of(logits));
  if (best == kLowest) {
    return kLowest;
  }
  // Short float32 sums, added up in double: one long sum would lose digits.
  constexpr size_t kBlock = 1024;
  double sum = 0;
  for (size_t begin = 0; begin < logits.size(); begin += kBlock) {
    const auto block =
        logits.subspan(begin, std::min(kBlock, logits.size() - begin));
    sum += table.sum_exp(block.data(), size_of(block), best);
  }
  return static_cast<float>(best + std::log(sum));
}

void relative_probabilities(
    std::span<const float> logits,
    float temperature,
    std::span<float> out) {
  SHEAVE_CHECK(
      out.size() == logits.size() && temperature > 0,
      "as many places as logits, and a temperature");
  const KernelTable& table = decoding_table();
  const float best = table.largest_logit(logits.data(), size_of(logits));
  if (best == kLowest) {
    std::fill(out.begin(), out.end(), 0.0F);
    return;
  }
  table.exp_logits(
      logits.data(),
      size_of(logits),
      best,
      1.0F / temperature,
      out.data());
}

} // namespace sheave::kernels
