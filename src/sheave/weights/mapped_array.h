// An mx::array over a mapped file's bytes. Internal to the weights room.
#pragma once

#include <mlx/array.h>

#include <cstdint>
#include <memory>

#include "sheave/weights/mapped_file.h"

namespace sheave {

namespace mx = mlx::core;

/// An array of the bytes from `offset` on; the caller has checked that they
/// are there. No copy is made where MLX's memory is the CPU's and the bytes
/// are aligned for the dtype; elsewhere they are copied once. The mapping lives
/// as long as the array. Never donated, so never written to.
mx::array mapped_array(
    const std::shared_ptr<const MappedFile>& file,
    uint64_t offset,
    mx::Shape shape,
    mx::Dtype dtype);

} // namespace sheave
