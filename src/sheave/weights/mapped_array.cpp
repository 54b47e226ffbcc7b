#include "sheave/weights/mapped_array.h"

#include <mlx/device.h>

#include <utility>

#include "sheave/kernels/foreign_array.h"

namespace sheave {
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
  return kernels::foreign_array(data, std::move(shape), dtype, file);
}

} // namespace sheave
