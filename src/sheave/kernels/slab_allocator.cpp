#include "sheave/kernels/slab_allocator.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "sheave/kernels/foreign_array.h"

namespace sheave::kernels {
namespace {

constexpr size_t kLine = 64;
constexpr size_t kHugePage = size_t{2} << 20;

size_t round_up(size_t n, size_t unit) {
  return (n + unit - 1) / unit * unit;
}

/// Anonymous memory that begins on a huge page's boundary.
std::shared_ptr<uint8_t> map_slab(size_t size) {
  const size_t mapped = size + kHugePage;
  void* start = ::mmap(
      nullptr,
      mapped,
      PROT_READ | PROT_WRITE,
      MAP_PRIVATE | MAP_ANONYMOUS,
      -1,
      0);
  if (start == MAP_FAILED) {
    throw std::bad_alloc();
  }
  auto* bytes = static_cast<uint8_t*>(start);
  const auto address = reinterpret_cast<uintptr_t>(bytes);
  uint8_t* aligned = bytes + (round_up(address, kHugePage) - address);
#ifdef MADV_HUGEPAGE
  ::madvise(aligned, size, MADV_HUGEPAGE);
#endif
  return {aligned, [start, mapped](uint8_t*) { ::munmap(start, mapped); }};
}

} // namespace

SlabAllocator::Piece SlabAllocator::allocate(int rows, size_t row_bytes) {
  // A line before each piece holds its size, where MLX looks for it.
  const size_t needed =
      kLine + round_up(static_cast<size_t>(rows) * row_bytes, kLine);
  if (used_ + needed > size_) {
    size_ = round_up(std::max(needed, kSlabBytes), kHugePage);
    slab_ = map_slab(size_);
    used_ = 0;
  }
  uint8_t* bytes = slab_.get() + used_ + kLine;
  const size_t content = needed - kLine;
  std::memcpy(bytes - sizeof(size_t), &content, sizeof(content));
  used_ += needed;
  return {
      .array = foreign_array(
          bytes,
          {rows, static_cast<int>(row_bytes)},
          mx::uint8,
          slab_),
      .bytes = bytes};
}

} // namespace sheave::kernels
