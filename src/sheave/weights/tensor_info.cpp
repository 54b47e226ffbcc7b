#include "sheave/weights/tensor_info.h"

#include <algorithm>

#include "sheave/base/file_error.h"

namespace sheave {

std::optional<int64_t> checked_element_count(
    const std::vector<int64_t>& shape) {
  int64_t count = 1;
  for (const int64_t n : shape) {
    if (n < 0 || __builtin_mul_overflow(count, n, &count)) {
      return std::nullopt;
    }
  }
  return count;
}

int64_t element_count(const std::vector<int64_t>& shape) {
  return checked_element_count(shape).value_or(0);
}

std::string shape_text(const std::vector<int64_t>& shape) {
  std::string text = "[";
  for (const int64_t n : shape) {
    text += (text.size() > 1 ? ", " : "") + std::to_string(n);
  }
  return text + "]";
}

std::string printable(std::string_view text) {
  constexpr size_t kMaxBytes = 100;
  std::string result(text.substr(0, kMaxBytes));
  for (char& c : result) {
    c = c >= 0x20 && c < 0x7F ? c : '?';
  }
  return result;
}

void check_overlaps(
    const std::string& where,
    const std::vector<TensorInfo>& tensors) {
  std::vector<const TensorInfo*> order;
  for (const TensorInfo& tensor : tensors) {
    if (tensor.bytes > 0) {
      order.push_back(&tensor);
    }
  }
  std::sort(order.begin(), order.end(), [](const auto* a, const auto* b) {
    return a->offset < b->offset;
  });
  for (size_t i = 1; i < order.size(); ++i) {
    const TensorInfo& before = *order[i - 1];
    if (order[i]->offset < before.offset + before.bytes) {
      throw FileError(
          where + ": tensors " + printable(before.name) + " and " +
          printable(order[i]->name) + " overlap at byte " +
          std::to_string(order[i]->offset));
    }
  }
}

} // namespace sheave
