// PackedWeight: a quantized matrix repacked for the integer kernels. Sixteen
// output rows make a panel, in which the bytes that one SIMD instruction
// multiplies lie side by side. Not a file format: made at load, never stored.
#pragma once

#include <mlx/array.h>

#include "sheave/kernels/packed_layout.h"
#include "sheave/kernels/slab_allocator.h"
#include "sheave/kernels/weight.h"

namespace sheave::kernels {

/// data: uint8 [panels, panel_bytes], aligned to 64 bytes; rows after
/// out_features are zeros.
struct PackedWeight {
  PackedLayout layout;
  int out_features;
  mx::array data;

  int panels() const {
    return panels_of(out_features);
  }
};

/// Whether pack() takes this weight: quantized, whole groups of 32 columns.
bool packable(const Weight& weight);

/// Repacks a weight, into memory of `slabs`. Reads the weight's arrays, on the
/// kernels' threads; values are kept exactly.
/// Throws std::invalid_argument if the weight isn't packable or its arrays
/// don't fit its format.
PackedWeight pack(const Weight& weight, SlabAllocator& slabs);

/// The whole weight as float32 [out_features, in_features], for tests and the
/// reference path.
mx::array dequantize(const PackedWeight& weight);

} // namespace sheave::kernels
