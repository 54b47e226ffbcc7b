// GGUF's tensor types by their numbers. No MLX. Internal to the weights room.
// Source: ggml.h at llama.cpp de3ff81, block sizes from ggml-common.h.
#pragma once

#include <cstdint>
#include <optional>

namespace sheave {

/// A row is whole blocks of `elements` in `bytes`.
struct GgufBlockType {
  const char* name;
  int elements;
  int bytes;
};

/// Nothing for a number that no type has.
std::optional<GgufBlockType> gguf_block_type(uint32_t number);

} // namespace sheave
