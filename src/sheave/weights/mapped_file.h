// MappedFile: a file's bytes, read-only, in the process's address space. Pages
// are read when touched.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>

namespace sheave {

/// A mapped regular file. Bytes stay valid as long as the object lives, also
/// when the file is deleted or replaced; but a process that reads bytes which
/// another has cut off meanwhile is ended by the system (SIGBUS).
class MappedFile {
 public:
  /// Throws FileError, with the system's own words, if the path isn't a
  /// readable regular file or is empty.
  static std::shared_ptr<const MappedFile> open(
      const std::filesystem::path& path);

  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const uint8_t> bytes() const {
    return bytes_;
  }
  /// Lets the system take the memory of these bytes; they are read from the
  /// file again when touched.
  void release_pages(uint64_t offset, uint64_t size) const;

  const std::filesystem::path& path() const {
    return path_;
  }

 private:
  MappedFile(std::filesystem::path path, std::span<const uint8_t> bytes);

  std::filesystem::path path_;
  std::span<const uint8_t> bytes_;
};

} // namespace sheave
