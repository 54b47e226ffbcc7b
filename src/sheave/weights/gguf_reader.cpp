#include "sheave/weights/gguf_reader.h"

#include <iterator>

namespace sheave {
namespace {

// NOLINTNEXTLINE(performance-enum-size): as wide as the file stores it
enum ValueType : uint32_t {
  kU8,
  kI8,
  kU16,
  kI16,
  kU32,
  kI32,
  kF32,
  kBool,
  kString,
  kArray,
  kU64,
  kI64,
  kF64,
};

constexpr int kMaxArrayDepth = 4;
/// Bytes of a value of fixed size; 0 for strings and arrays, which take at
/// least 8; -1 for a type that doesn't exist.
int value_bytes(uint32_t type) {
  constexpr int kBytes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
  return type < std::size(kBytes) ? kBytes[type] : -1;
}

} // namespace

void GgufReader::check_type(uint32_t type, const std::string& key) const {
  if (value_bytes(type) < 0) {
    fail(
        "key " + key + " has the unknown type " + std::to_string(type) +
        ", expected 0 to 12");
  }
}

GgufValue
GgufReader::take_value(uint32_t type, const std::string& key, int depth) {
  check_type(type, key);
  switch (type) {
    case kU8:
      return int64_t{take<uint8_t>(key)};
    case kI8:
      return int64_t{take<int8_t>(key)};
    case kU16:
      return int64_t{take<uint16_t>(key)};
    case kI16:
      return int64_t{take<int16_t>(key)};
    case kU32:
      return int64_t{take<uint32_t>(key)};
    case kI32:
      return int64_t{take<int32_t>(key)};
    case kF32:
      return double{take<float>(key)};
    case kBool:
      return take<uint8_t>(key) != 0;
    case kString:
      return take_string(key);
    case kU64:
      return take<uint64_t>(key);
    case kI64:
      return take<int64_t>(key);
    case kF64:
      return take<double>(key);
    default:
      return take_array(key, depth);
  }
}

GgufValue GgufReader::take_array(const std::string& key, int depth) {
  const auto type = take<uint32_t>(key);
  check_type(type, key);
  const int bytes = value_bytes(type);
  const uint64_t count = take_count(
      bytes > 0 ? static_cast<uint64_t>(bytes) : 8,
      "elements of key " + key);
  if (count > elements_left_) {
    fail(
        "key " + key + " has " + std::to_string(count) +
        " elements, expected at most " + std::to_string(kMaxGgufElements) +
        " in all keys");
  }
  elements_left_ -= count;
  if (type == kArray) {
    if (depth == kMaxArrayDepth) {
      fail(
          "key " + key + " nests arrays deeper than " +
          std::to_string(kMaxArrayDepth) + " levels");
    }
    for (uint64_t i = 0; i < count; ++i) {
      take_array(key, depth + 1);
    }
    return std::monostate{};
  }
  if (type == kString) {
    return take_list<std::string>(count, [&] {
      return take_string("key " + key);
    });
  }
  if (type == kF32) {
    return take_list<float>(count, [&] { return take<float>(key); });
  }
  if (type == kF64) {
    return take_list<float>(count, [&] {
      return static_cast<float>(take<double>(key));
    });
  }
  return take_list<int64_t>(count, [&] { return take_integer(type, key); });
}

int64_t GgufReader::take_integer(uint32_t type, const std::string& key) {
  const GgufValue value = take_value(type, key);
  if (const auto* flag = std::get_if<bool>(&value)) {
    return *flag ? 1 : 0;
  }
  if (const auto* wide = std::get_if<uint64_t>(&value)) {
    return static_cast<int64_t>(*wide);
  }
  return std::get<int64_t>(value);
}

} // namespace sheave
