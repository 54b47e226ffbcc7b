// rotate_heads: the rotation of one token, for primitives that do it on the
// way. Internal to the kernels room.
#pragma once

#include "sheave/kernels/rope/rope.h"

namespace sheave::kernels {

/// How one token's heads lie and which of their dims are pairs.
struct RopeHeads {
  int heads;
  int head_dim;
  int num_pairs;
  RopePairs pairs;
};

/// Rotates [heads, head_dim] floats in place. table: num_pairs cosines, then
/// as many sines. Plain loops: the work is a few per mille of a step.
void rotate_heads(const RopeHeads& heads, const float* table, float* x);

} // namespace sheave::kernels
