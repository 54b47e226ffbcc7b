// GgufReader: takes values off the front of a GGUF file's bytes, never past
// their end, and believes no count or size before it has checked it. No MLX.
// Internal to the weights room.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "sheave/base/file_error.h"
#include "sheave/weights/gguf.h"

namespace sheave {

// Array elements in all of the metadata: a vocabulary's lists take a few per
// token. A one-byte element takes eight here, so the file's size is no bound.
constexpr uint64_t kMaxGgufElements = uint64_t{1} << 24;

/// `where` begins every message; it must outlive the reader.
class GgufReader {
 public:
  GgufReader(std::span<const uint8_t> file, const std::string& where)
      : file_(file), where_(where) {}

  [[noreturn]] void fail(const std::string& what) const {
    throw FileError(where_ + ": " + what);
  }

  uint64_t position() const {
    return position_;
  }
  uint64_t rest() const {
    return file_.size() - position_;
  }

  template <typename T>
  T take(const std::string& what) {
    T value;
    std::memcpy(&value, take_bytes(sizeof(T), what).data(), sizeof(T));
    return value;
  }

  std::string take_string(const std::string& what) {
    const auto size = take<uint64_t>(what);
    const auto bytes = take_bytes(size, what);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  /// A count of things that take at least `least` bytes each in the file.
  uint64_t take_count(uint64_t least, const std::string& what) {
    const auto count = take<uint64_t>(what);
    if (count > rest() / least) {
      fail(
          "has " + std::to_string(count) + " " + what + ", expected at most " +
          std::to_string(rest() / least) + " in the " + std::to_string(rest()) +
          " bytes that follow");
    }
    return count;
  }

  GgufValue take_value(uint32_t type, const std::string& key, int depth = 0);

 private:
  std::span<const uint8_t> take_bytes(uint64_t count, const std::string& what) {
    if (count > rest()) {
      fail(
          "the file ends within " + what + ": expected " +
          std::to_string(count) + " bytes at byte " +
          std::to_string(position_) + ", found " + std::to_string(rest()));
    }
    const auto bytes = file_.subspan(position_, count);
    position_ += count;
    return bytes;
  }

  template <typename T, typename Take>
  std::vector<T> take_list(uint64_t count, const Take& take_one) {
    std::vector<T> list;
    list.reserve(count); // checked: kMaxGgufElements, and the file's own size
    for (uint64_t i = 0; i < count; ++i) {
      list.push_back(take_one());
    }
    return list;
  }

  GgufValue take_array(const std::string& key, int depth);
  int64_t take_integer(uint32_t type, const std::string& key);
  void check_type(uint32_t type, const std::string& key) const;

  std::span<const uint8_t> file_;
  const std::string& where_;
  uint64_t position_ = 0;
  uint64_t elements_left_ = kMaxGgufElements;
};

} // namespace sheave
