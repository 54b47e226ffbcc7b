#include "sheave/weights/mapped_array.h"

#include <mlx/allocator.h>
#include <mlx/device.h>

#include <cstddef>
#include <utility>

#include "sheave/base/check.h"

namespace sheave {
namespace {

/// MLX's CPU buffers point to a size_t that stands before the data.
mx::allocator::Buffer buffer_before(const uint8_t* data) {
  return mx::allocator::Buffer(const_cast<uint8_t*>(data) - sizeof(size_t));
}

} // namespace

mx::array mapped_array(
    const std::shared_ptr<const MappedFile>& file,
    uint64_t offset,
    mx::Shape shape,
    mx::Dtype dtype) {
  const uint8_t* data = file->bytes().data() + offset;
  const bool aligned =
      reinterpret_cast<uintptr_t>(data) % mx::size_of(dtype) == 0;
  if (!aligned || mx::is_available(mx::Device::gpu)) {
    // This constructor copies unless the device can share host memory.
    return mx::array(
        const_cast<uint8_t*>(data),
        std::move(shape),
        dtype,
        [file](void*) { /* the file goes with the closure */ });
  }
  mx::array result(
      mx::allocator::Data(
          buffer_before(data),
          [file](mx::allocator::Buffer) { /* likewise */ }),
      std::move(shape),
      dtype);
  SHEAVE_CHECK(
      result.data<uint8_t>() == data,
      "MLX's CPU buffers are laid out in another way than expected");
  return result;
}

} // namespace sheave
