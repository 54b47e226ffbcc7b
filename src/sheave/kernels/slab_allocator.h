// SlabAllocator: memory for weights that live as long as their model, in a few
// large blocks on huge pages where the system has them: a matrix is streamed
// through at each token, and small pages would cost a lookup each.
#pragma once

#include <mlx/array.h>

#include <cstddef>
#include <cstdint>
#include <memory>

namespace sheave::kernels {

namespace mx = mlx::core;

/// Hands out pieces of slabs, aligned to 64 bytes and filled with zeros. A
/// slab is given back when all arrays over it are gone. Not thread-safe.
class SlabAllocator {
 public:
  /// Larger requests get a slab of their own.
  static constexpr size_t kSlabBytes = size_t{16} << 20;

  /// An array over fresh memory, uint8 [rows, row_bytes]. The second value is
  /// where to write its content before first use. Throws std::bad_alloc.
  struct Piece {
    mx::array array;
    uint8_t* bytes;
  };
  Piece allocate(int rows, size_t row_bytes);

 private:
  std::shared_ptr<uint8_t> slab_;
  size_t used_ = 0;
  size_t size_ = 0;
};

} // namespace sheave::kernels
