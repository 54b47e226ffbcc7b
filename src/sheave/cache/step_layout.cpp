#include "sheave/cache/step_layout.h"

#include <cstddef>

namespace sheave {

StepLayout StepLayout::single(int first_position, int num_tokens) {
  return {
      {{.first_token = 0,
        .num_tokens = num_tokens,
        .first_position = first_position}}};
}

int StepLayout::num_tokens() const {
  int total = 0;
  for (const StepRow& row : rows) {
    total += row.num_tokens;
  }
  return total;
}

std::vector<int32_t> StepLayout::positions() const {
  std::vector<int32_t> result;
  result.reserve(static_cast<size_t>(num_tokens()));
  for (const StepRow& row : rows) {
    for (int i = 0; i < row.num_tokens; ++i) {
      result.push_back(row.first_position + i);
    }
  }
  return result;
}

} // namespace sheave
