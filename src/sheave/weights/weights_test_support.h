// For the tests of this room: files built byte by byte, right or wrong.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sheave/base/file_error.h"

namespace sheave {

/// The message of the FileError that `run` throws, or "" if it throws none.
template <typename Run>
std::string file_error_of(const Run& run) {
  try {
    run();
  } catch (const FileError& error) {
    return error.what();
  }
  return "";
}

inline testing::AssertionResult contains(
    const std::string& text,
    const std::string& part) {
  return text.find(part) != std::string::npos
             ? testing::AssertionSuccess()
             : testing::AssertionFailure()
                   << "expected \"" << part << "\" within \"" << text << "\"";
}

inline testing::AssertionResult begins_with(
    const std::string& text,
    const std::string& part) {
  return text.starts_with(part) ? testing::AssertionSuccess()
                                : testing::AssertionFailure()
                                      << "expected \"" << part << "\" before \""
                                      << text << "\"";
}

inline std::span<const uint8_t> bytes_of(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

template <typename T>
std::string raw(T value) {
  return {reinterpret_cast<const char*>(&value), sizeof(value)};
}

/// A GGUF file, piece by piece. Counts are those of what was added, plus the
/// two that a test may falsify.
class GgufBuilder {
 public:
  enum Type : uint32_t {
    kU8 = 0,
    kU32 = 4,
    kI32 = 5,
    kF32 = 6,
    kBool = 7,
    kString = 8,
    kArray = 9,
    kU64 = 10
  };

  static std::string text(std::string_view value) {
    return raw<uint64_t>(value.size()) + std::string(value);
  }

  /// A key with its value as raw bytes.
  GgufBuilder& add(std::string_view key, uint32_t type, std::string value) {
    keys_ += text(key) + raw(type) + value;
    ++key_count_;
    return *this;
  }
  GgufBuilder& add(std::string_view key, uint32_t value) {
    return add(key, kU32, raw(value));
  }
  GgufBuilder& add(std::string_view key, float value) {
    return add(key, kF32, raw(value));
  }
  GgufBuilder& add(std::string_view key, std::string_view value) {
    return add(key, kString, text(value));
  }
  GgufBuilder& add(std::string_view key, const char* value) {
    return add(key, std::string_view(value));
  }
  GgufBuilder& add_list(
      std::string_view key,
      uint32_t type,
      uint64_t count,
      std::string values) {
    return add(key, kArray, raw(type) + raw(count) + values);
  }

  /// A tensor's description; dims innermost first, as GGUF stores them.
  GgufBuilder& add_tensor(
      std::string_view name,
      const std::vector<uint64_t>& dims,
      uint32_t type,
      uint64_t offset) {
    tensors_ += text(name) + raw(static_cast<uint32_t>(dims.size()));
    for (const uint64_t dim : dims) {
      tensors_ += raw(dim);
    }
    tensors_ += raw(type) + raw(offset);
    ++tensor_count_;
    return *this;
  }

  std::string build(
      size_t data_bytes = 0,
      uint64_t more_tensors = 0,
      uint64_t more_keys = 0,
      size_t alignment = 32) const {
    std::string file = "GGUF" + raw<uint32_t>(3) +
                       raw(tensor_count_ + more_tensors) +
                       raw(key_count_ + more_keys) + keys_ + tensors_;
    if (data_bytes > 0) {
      file.resize((file.size() + alignment - 1) / alignment * alignment);
      file.append(data_bytes, '\0');
    }
    return file;
  }

 private:
  std::string keys_;
  std::string tensors_;
  uint64_t key_count_ = 0;
  uint64_t tensor_count_ = 0;
};

/// A safetensors file of this header and data.
inline std::string safetensors_file(
    std::string_view header,
    std::string_view data = "") {
  return raw<uint64_t>(header.size()) + std::string(header) + std::string(data);
}

/// A folder that is gone at the end of the scope.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name =
        (std::filesystem::temp_directory_path() / "sheave-XXXXXX").string();
    path_ = mkdtemp(name.data());
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const {
    return path_;
  }
  std::filesystem::path write(const std::string& name, std::string_view content)
      const {
    std::ofstream(path_ / name, std::ios::binary) << content;
    return path_ / name;
  }

 private:
  std::filesystem::path path_;
};

inline std::filesystem::path weight_fixture(const std::string& name) {
  return std::filesystem::path(SHEAVE_SOURCE_DIR) / "tests" / "fixtures" /
         "weights" / name;
}

inline std::string read_whole(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

} // namespace sheave
