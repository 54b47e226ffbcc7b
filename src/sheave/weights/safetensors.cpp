#include "sheave/weights/safetensors.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "sheave/base/file_error.h"
#include "sheave/weights/json_object.h"

namespace sheave {
namespace {

using Json = nlohmann::json;

constexpr uint64_t kMaxHeaderBytes = 100'000'000;

/// Bits of an element, 0 for a dtype that the format doesn't have.
int dtype_bits(const std::string& dtype) {
  static const std::map<std::string, int> bits = {
      {"F4", 4},   {"F6_E2M3", 6}, {"F6_E3M2", 6}, {"BOOL", 8},    {"U8", 8},
      {"I8", 8},   {"F8_E5M2", 8}, {"F8_E4M3", 8}, {"F8_E8M0", 8}, {"I16", 16},
      {"U16", 16}, {"F16", 16},    {"BF16", 16},   {"I32", 32},    {"U32", 32},
      {"F32", 32}, {"F64", 64},    {"I64", 64},    {"U64", 64},    {"C64", 64}};
  const auto found = bits.find(dtype);
  return found == bits.end() ? 0 : found->second;
}

[[noreturn]] void fail_tensor(
    const std::string& where,
    const std::string& name,
    const std::string& what) {
  throw FileError(where + ": tensor " + printable(name) + " " + what);
}

const Json& member(
    const std::string& where,
    const std::string& name,
    const Json& entry,
    const char* key) {
  const auto found = entry.find(key);
  if (found == entry.end()) {
    fail_tensor(
        where,
        name,
        std::string("has no ") + key + ", expected dtype, shape, data_offsets");
  }
  return *found;
}

/// An array of non-negative integers.
std::vector<int64_t> integers(
    const std::string& where,
    const std::string& name,
    const char* key,
    const Json& value) {
  std::vector<int64_t> result;
  const bool array = value.is_array();
  if (array) {
    for (const Json& item : value) {
      const bool fits =
          item.is_number_unsigned() &&
          item.get<uint64_t>() <= static_cast<uint64_t>(INT64_MAX);
      if (fits) {
        result.push_back(item.get<int64_t>());
      }
    }
  }
  if (!array || result.size() != value.size()) {
    fail_tensor(
        where,
        name,
        std::string("has ") + key + " " + short_dump(value) +
            ", expected a list of sizes");
  }
  return result;
}

TensorInfo parse_tensor(
    const std::string& where,
    const std::string& name,
    const Json& entry,
    uint64_t data_start,
    uint64_t data_bytes) {
  if (!entry.is_object()) {
    fail_tensor(
        where,
        name,
        "is " + short_dump(entry) + ", expected an object");
  }
  const Json& dtype = member(where, name, entry, "dtype");
  if (!dtype.is_string() || dtype_bits(dtype.get<std::string>()) == 0) {
    fail_tensor(
        where,
        name,
        "has dtype " + short_dump(dtype) + ", expected one of safetensors'");
  }
  TensorInfo tensor;
  tensor.name = name;
  tensor.type = dtype.get<std::string>();
  tensor.shape =
      integers(where, name, "shape", member(where, name, entry, "shape"));
  const auto offsets = integers(
      where,
      name,
      "data_offsets",
      member(where, name, entry, "data_offsets"));
  const bool in_file = offsets.size() == 2 && offsets[0] <= offsets[1] &&
                       static_cast<uint64_t>(offsets[1]) <= data_bytes;
  if (!in_file) {
    fail_tensor(
        where,
        name,
        "has data_offsets " + shape_text(offsets) +
            ", expected them within the data's " + std::to_string(data_bytes) +
            " bytes (is the file cut short?)");
  }
  tensor.offset = data_start + static_cast<uint64_t>(offsets[0]);
  tensor.bytes = static_cast<uint64_t>(offsets[1] - offsets[0]);
  const auto elements = checked_element_count(tensor.shape);
  int64_t bits = 0;
  if (!elements ||
      __builtin_mul_overflow(*elements, dtype_bits(tensor.type), &bits) ||
      bits % 8 != 0 || static_cast<uint64_t>(bits) / 8 != tensor.bytes) {
    fail_tensor(
        where,
        name,
        "takes " + std::to_string(tensor.bytes) + " bytes, expected " +
            (elements ? std::to_string(bits / 8) : "fewer elements") + " for " +
            tensor.type + " " + shape_text(tensor.shape));
  }
  return tensor;
}

} // namespace

std::vector<TensorInfo> parse_safetensors(
    std::span<const uint8_t> file,
    const std::string& where) {
  uint64_t header_bytes = 0;
  if (file.size() < sizeof(header_bytes)) {
    throw FileError(
        where + ": " + std::to_string(file.size()) +
        " bytes, expected at least the 8 of a safetensors file");
  }
  std::memcpy(&header_bytes, file.data(), sizeof(header_bytes));
  const uint64_t rest = file.size() - sizeof(header_bytes);
  if (header_bytes > kMaxHeaderBytes || header_bytes > rest) {
    throw FileError(
        where + ": has a header of " + std::to_string(header_bytes) +
        " bytes, expected at most " +
        std::to_string(std::min(kMaxHeaderBytes, rest)) +
        " (is it cut short, or not safetensors?)");
  }
  const std::string_view text(
      reinterpret_cast<const char*>(file.data()) + sizeof(header_bytes),
      header_bytes);
  const Json header = parse_json_object(text, where, RepeatedKeys::kRefuse);
  std::vector<TensorInfo> tensors;
  for (const auto& [name, entry] : header.items()) {
    if (name != "__metadata__") {
      tensors.push_back(parse_tensor(
          where,
          name,
          entry,
          sizeof(header_bytes) + header_bytes,
          rest - header_bytes));
    }
  }
  std::sort(tensors.begin(), tensors.end(), [](const auto& a, const auto& b) {
    return a.offset < b.offset;
  });
  check_overlaps(where, tensors);
  return tensors;
}

std::map<std::string, std::string> parse_shard_index(
    std::string_view text,
    const std::string& where) {
  const Json index = parse_json_object(text, where, RepeatedKeys::kRefuse);
  const auto found = index.find("weight_map");
  if (found == index.end() || !found->is_object() || found->empty()) {
    throw FileError(
        where + ": key weight_map is " +
        (found == index.end() ? "missing" : short_dump(*found)) +
        ", expected a map of tensors to files");
  }
  std::map<std::string, std::string> shards;
  for (const auto& [tensor, file] : found->items()) {
    const std::string name = file.is_string() ? file.get<std::string>() : "";
    const bool plain =
        !name.empty() && name != "." && name != ".." &&
        name.find_first_of(std::string_view("/\\\0", 3)) == std::string::npos;
    if (!plain) {
      throw FileError(
          where + ": key weight_map: tensor " + printable(tensor) + " is in " +
          short_dump(file) + ", expected a plain file name");
    }
    shards[tensor] = name;
  }
  return shards;
}

} // namespace sheave
