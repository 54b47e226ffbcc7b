// foreign_array: an MLX array over memory that MLX didn't allocate.
#pragma once

#include <mlx/array.h>

#include <cstdint>
#include <memory>

namespace sheave::kernels {

namespace mx = mlx::core;

/// An array over `data`, row-contiguous, without a copy; for MLX's CPU backend
/// only. `owner` keeps the memory alive and goes with the last reference to
/// the array. The eight bytes before `data` must belong to the process; where
/// they don't hold the buffer's size, mx::contiguous copies the array.
/// MLX's public constructor for such memory copies it on the CPU; this relies
/// on CPU buffers pointing at a size_t before the data, and checks it.
mx::array foreign_array(
    const uint8_t* data,
    mx::Shape shape,
    mx::Dtype dtype,
    std::shared_ptr<const void> owner);

} // namespace sheave::kernels
