#include "sheave/weights/gguf.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "sheave/base/file_error.h"
#include "sheave/weights/gguf_reader.h"
#include "sheave/weights/gguf_types.h"
#include "sheave/weights/utf8.h"

namespace sheave {
namespace {

constexpr uint64_t kMaxDims = 4;

/// What a value is, for messages.
const char* kind_of(const GgufValue& value) {
  constexpr const char* kKinds[] = {
      "a list of lists",
      "an integer",
      "an integer",
      "a number",
      "true or false",
      "a string",
      "a list of integers",
      "a list of numbers",
      "a list of strings"};
  static_assert(std::size(kKinds) == std::variant_size_v<GgufValue>);
  return kKinds[value.index()];
}

uint64_t round_up(uint64_t value, uint64_t step) {
  return (value + step - 1) / step * step;
}

/// A key's or tensor's name: printable ASCII, so that messages can carry it.
std::string take_name(GgufReader& reader, const std::string& what) {
  std::string name = reader.take_string(what);
  if (name.empty() || name != printable(name)) {
    reader.fail(
        what + " is \"" + printable(name) + "\" (" +
        std::to_string(name.size()) +
        " bytes), expected 1 to 100 of printable ASCII");
  }
  return name;
}

std::vector<int64_t> take_shape(GgufReader& reader, const std::string& name) {
  const auto dims = reader.take<uint32_t>("tensor " + name);
  if (dims < 1 || dims > kMaxDims) {
    reader.fail(
        "tensor " + name + " has " + std::to_string(dims) +
        " dimensions, expected 1 to 4");
  }
  std::vector<int64_t> shape(dims);
  for (auto size = shape.rbegin(); size != shape.rend(); ++size) {
    *size = reader.take<int64_t>("tensor " + name);
    if (*size < 1) {
      reader.fail(
          "tensor " + name + " has a dimension of " +
          std::to_string(static_cast<uint64_t>(*size)) +
          ", expected 1 or more");
    }
  }
  return shape;
}

/// One tensor's description; `offset` still counts from the data's start.
TensorInfo take_tensor(GgufReader& reader) {
  TensorInfo tensor;
  tensor.name = take_name(reader, "a tensor's name");
  const std::string what = "tensor " + tensor.name;
  tensor.shape = take_shape(reader, tensor.name);
  const auto number = reader.take<uint32_t>(what);
  const auto type = gguf_block_type(number);
  if (!type) {
    reader.fail(
        what + " has the type number " + std::to_string(number) +
        ", expected a known one");
  }
  tensor.type = type->name;
  tensor.offset = reader.take<uint64_t>(what);
  const auto elements = checked_element_count(tensor.shape);
  if (!elements || tensor.shape.back() % type->elements != 0) {
    reader.fail(
        what + " is " + shape_text(tensor.shape) + ", expected rows of whole " +
        tensor.type + " blocks of " + std::to_string(type->elements));
  }
  if (__builtin_mul_overflow(
          static_cast<uint64_t>(*elements / type->elements),
          static_cast<uint64_t>(type->bytes),
          &tensor.bytes)) {
    reader.fail(
        what + " is " + shape_text(tensor.shape) +
        ", expected no more bytes than a file can have");
  }
  return tensor;
}

void check_magic(GgufReader& reader) {
  constexpr uint32_t kMagic = 0x46554747; // "GGUF"
  if (reader.rest() < 4 || reader.take<uint32_t>("the magic") != kMagic) {
    reader.fail("is not a GGUF file: expected it to begin with \"GGUF\"");
  }
  const auto version = reader.take<uint32_t>("the version");
  if ((version & 0xFFFFU) == 0) {
    reader.fail("is a big-endian GGUF file, expected a little-endian one");
  }
  if (version != 2 && version != 3) {
    reader.fail(
        "has GGUF version " + std::to_string(version) + ", expected 2 or 3");
  }
}

std::map<std::string, GgufValue> take_metadata(
    GgufReader& reader,
    uint64_t count) {
  std::map<std::string, GgufValue> metadata;
  for (uint64_t i = 0; i < count; ++i) {
    const std::string key = take_name(reader, "a key's name");
    const auto type = reader.take<uint32_t>("key " + key);
    if (!metadata.emplace(key, reader.take_value(type, key)).second) {
      reader.fail("has the key " + key + " twice, expected it once");
    }
  }
  return metadata;
}

/// Makes offsets count from the file's start, and checks where tensors lie.
void place_tensors(
    const GgufReader& reader,
    uint64_t alignment,
    std::vector<TensorInfo>& tensors,
    const std::string& where) {
  const uint64_t file_bytes = reader.position() + reader.rest();
  const uint64_t start = round_up(reader.position(), alignment);
  std::set<std::string_view> names;
  for (TensorInfo& tensor : tensors) {
    if (!names.insert(tensor.name).second) {
      reader.fail("has the tensor " + tensor.name + " twice, expected it once");
    }
    const bool inside = start <= file_bytes &&
                        tensor.offset <= file_bytes - start &&
                        tensor.bytes <= file_bytes - start - tensor.offset;
    if (!inside) {
      reader.fail(
          "tensor " + tensor.name + " takes " + std::to_string(tensor.bytes) +
          " bytes at byte " + std::to_string(tensor.offset) +
          " of the data, expected it within " +
          std::to_string(start <= file_bytes ? file_bytes - start : 0) +
          " (is the file cut short?)");
    }
    if (tensor.offset % alignment != 0) {
      reader.fail(
          "tensor " + tensor.name + " lies at offset " +
          std::to_string(tensor.offset) + ", expected a multiple of " +
          std::to_string(alignment));
    }
    tensor.offset += start;
  }
  check_overlaps(where, tensors);
}

} // namespace

GgufFile GgufFile::parse(
    std::span<const uint8_t> file,
    const std::string& where) {
  GgufFile result;
  result.where_ = where;
  GgufReader reader(file, where);
  check_magic(reader);
  // A tensor takes at least 8 + 1 + 4 + 8 + 4 + 8 bytes, a key 8 + 1 + 4 + 1.
  const uint64_t tensors = reader.take_count(33, "tensors");
  const uint64_t keys = reader.take_count(14, "keys");
  result.metadata_ = take_metadata(reader, keys);
  for (uint64_t i = 0; i < tensors; ++i) {
    result.tensors_.push_back(take_tensor(reader));
  }
  const int64_t alignment = result.integer("general.alignment").value_or(32);
  if (alignment < 1 || alignment > (1 << 20) ||
      (alignment & (alignment - 1)) != 0) {
    reader.fail(
        "key general.alignment is " + std::to_string(alignment) +
        ", expected a power of two up to 1048576");
  }
  place_tensors(
      reader,
      static_cast<uint64_t>(alignment),
      result.tensors_,
      where);
  return result;
}

template <typename T>
const T* GgufFile::find(const std::string& key, const char* kind) const {
  const auto found = metadata_.find(key);
  if (found == metadata_.end()) {
    return nullptr;
  }
  const T* value = std::get_if<T>(&found->second);
  if (value == nullptr) {
    throw FileError(
        where_ + ": key " + key + " is " + kind_of(found->second) +
        ", expected " + kind);
  }
  return value;
}

std::optional<int64_t> GgufFile::integer(const std::string& key) const {
  const auto found = metadata_.find(key);
  if (found != metadata_.end()) {
    if (const auto* wide = std::get_if<uint64_t>(&found->second)) {
      if (*wide > static_cast<uint64_t>(INT64_MAX)) {
        throw FileError(
            where_ + ": key " + key + " is " + std::to_string(*wide) +
            ", expected at most " + std::to_string(INT64_MAX));
      }
      return static_cast<int64_t>(*wide);
    }
  }
  const auto* value = find<int64_t>(key, "an integer");
  return value == nullptr ? std::nullopt : std::optional(*value);
}

std::optional<double> GgufFile::number(const std::string& key) const {
  const auto found = metadata_.find(key);
  if (found != metadata_.end() &&
      !std::holds_alternative<double>(found->second)) {
    const auto whole = integer(key);
    return whole ? std::optional(static_cast<double>(*whole)) : std::nullopt;
  }
  const auto* value = find<double>(key, "a number");
  return value == nullptr ? std::nullopt : std::optional(*value);
}

std::optional<bool> GgufFile::boolean(const std::string& key) const {
  const auto* value = find<bool>(key, "true or false");
  return value == nullptr ? std::nullopt : std::optional(*value);
}

std::optional<std::string> GgufFile::string(const std::string& key) const {
  const auto* value = find<std::string>(key, "a string");
  if (value == nullptr) {
    return std::nullopt;
  }
  if (!is_utf8(*value)) {
    throw FileError(
        where_ + ": key " + key + " is \"" + printable(*value) +
        "\", expected UTF-8");
  }
  return *value;
}

bool GgufFile::is_list(const std::string& key) const {
  const auto found = metadata_.find(key);
  return found != metadata_.end() &&
         (found->second.index() == 0 || found->second.index() > 5);
}

const std::vector<std::string>& GgufFile::strings(
    const std::string& key) const {
  static const std::vector<std::string> none;
  const auto* value = find<std::vector<std::string>>(key, "a list of strings");
  return value == nullptr ? none : *value;
}

const std::vector<int64_t>& GgufFile::integers(const std::string& key) const {
  static const std::vector<int64_t> none;
  const auto* value = find<std::vector<int64_t>>(key, "a list of integers");
  return value == nullptr ? none : *value;
}

const std::vector<float>& GgufFile::floats(const std::string& key) const {
  static const std::vector<float> none;
  const auto* value = find<std::vector<float>>(key, "a list of numbers");
  return value == nullptr ? none : *value;
}

} // namespace sheave
