// The GGUF format, versions 2 and 3, little-endian: typed metadata, tensor
// descriptions, tensor bytes. No MLX.
// Source: ggml's docs/gguf.md; block sizes from ggml-common.h.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "sheave/weights/tensor_info.h"

namespace sheave {

/// A metadata value. Integers and floats of all widths are widened; arrays
/// keep their kind, flags as 0 and 1. Arrays of arrays are skipped over and
/// come as monostate. Strings are bytes as stored: a token may be any.
using GgufValue = std::variant<
    std::monostate,
    int64_t,
    uint64_t,
    double,
    bool,
    std::string,
    std::vector<int64_t>,
    std::vector<float>,
    std::vector<std::string>>;

/// A parsed header. Getters return nothing where the key is absent, and throw
/// FileError, naming the key, where it holds another kind of value.
class GgufFile {
 public:
  /// Parses a whole file's bytes; `where` begins every message. Throws
  /// FileError if anything in it contradicts the format or the file's size;
  /// no count or size is believed before it is checked.
  static GgufFile parse(
      std::span<const uint8_t> file,
      const std::string& where);

  std::optional<int64_t> integer(const std::string& key) const;
  std::optional<double> number(const std::string& key) const;
  std::optional<bool> boolean(const std::string& key) const;
  /// Throws also if the string isn't UTF-8.
  std::optional<std::string> string(const std::string& key) const;
  /// Lists are empty where the key is absent.
  const std::vector<std::string>& strings(const std::string& key) const;
  const std::vector<int64_t>& integers(const std::string& key) const;
  const std::vector<float>& floats(const std::string& key) const;

  bool has(const std::string& key) const {
    return metadata_.contains(key);
  }
  /// Whether the key is there and holds a list.
  bool is_list(const std::string& key) const;
  const std::vector<TensorInfo>& tensors() const {
    return tensors_;
  }
  const std::string& where() const {
    return where_;
  }

 private:
  template <typename T>
  const T* find(const std::string& key, const char* kind) const;

  std::string where_;
  std::map<std::string, GgufValue> metadata_;
  std::vector<TensorInfo> tensors_;
};

} // namespace sheave
