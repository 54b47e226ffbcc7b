#include "sheave/kernels/foreign_array.h"

#include <mlx/allocator.h>

#include <cstddef>
#include <utility>

#include "sheave/base/check.h"

namespace sheave::kernels {

mx::array foreign_array(
    const uint8_t* data,
    mx::Shape shape,
    mx::Dtype dtype,
    std::shared_ptr<const void> owner) {
  const mx::allocator::Buffer buffer(
      const_cast<uint8_t*>(data) - sizeof(size_t));
  mx::array result(
      mx::allocator::Data(
          buffer,
          [owner = std::move(owner)](mx::allocator::Buffer) {
            // The owner goes with the closure.
          }),
      std::move(shape),
      dtype);
  SHEAVE_CHECK(
      result.data<uint8_t>() == data,
      "MLX's CPU buffers are laid out in another way than expected");
  return result;
}

} // namespace sheave::kernels
