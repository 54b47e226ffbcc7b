#include "sheave/weights/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "sheave/base/file_error.h"

namespace sheave {
namespace {

/// Closes a descriptor at the end of the scope.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) {
      close(fd_);
    }
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  int get() const {
    return fd_;
  }

 private:
  int fd_;
};

[[noreturn]] void fail_file(
    const std::filesystem::path& path,
    const std::string& what) {
  throw FileError(path.string() + ": " + what);
}

} // namespace

void MappedFile::release_pages(uint64_t offset, uint64_t size) const {
  const auto page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  const uint64_t begin = (offset + page - 1) / page * page;
  const uint64_t end = (offset + size) / page * page;
  if (begin < end) {
    ::madvise(
        const_cast<uint8_t*>(bytes_.data()) + begin,
        end - begin,
        MADV_DONTNEED);
  }
}

MappedFile::MappedFile(
    std::filesystem::path path,
    std::span<const uint8_t> bytes)
    : path_(std::move(path)), bytes_(bytes) {}

MappedFile::~MappedFile() {
  // munmap takes what mmap gave, const or not.
  munmap(const_cast<uint8_t*>(bytes_.data()), bytes_.size());
}

std::shared_ptr<const MappedFile> MappedFile::open(
    const std::filesystem::path& path) {
  // O_NONBLOCK: a pipe without a writer would block here for good.
  const Descriptor file(
      ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) {
    fail_file(path, std::string("can't be opened: ") + std::strerror(errno));
  }
  struct stat status{};
  if (fstat(file.get(), &status) != 0) {
    fail_file(path, std::string("can't be read: ") + std::strerror(errno));
  }
  if (!S_ISREG(status.st_mode)) {
    fail_file(path, "is not a regular file, expected one");
  }
  if (status.st_size == 0) {
    fail_file(path, "is empty");
  }
  const auto size = static_cast<size_t>(status.st_size);
  void* data = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (data == MAP_FAILED) {
    fail_file(path, std::string("can't be mapped: ") + std::strerror(errno));
  }
  return std::shared_ptr<const MappedFile>(
      new MappedFile(path, {static_cast<const uint8_t*>(data), size}));
}

} // namespace sheave
