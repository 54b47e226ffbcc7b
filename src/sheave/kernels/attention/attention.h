// attention: causal softmax attention of packed tokens over what a cache
// holds, read in place. Positions and ranges come from the cache as plain
// integers (KVView); no mask is built and no column is moved.
#pragma once

#include <mlx/array.h>

#include <array>
#include <optional>
#include <vector>

#include "sheave/kernels/column_range.h"

namespace sheave::kernels {

namespace mx = mlx::core;

/// Keys and values of some rows, stored alike. Plain: keys, values:
/// [B, Hkv, S, D], one of float32, float16, bfloat16. Quantized (bits > 0), as
/// mx::quantize gives them: keys, values: [B, Hkv, S, D * bits / 32] uint32;
/// scales and biases: [B, Hkv, S, D / group_size], one float type; bits 4 or
/// 8, group_size 32, 64 or 128.
struct KVPlanes {
  mx::array keys;
  mx::array values;
  std::optional<mx::array> key_scales;
  std::optional<mx::array> key_biases;
  std::optional<mx::array> value_scales;
  std::optional<mx::array> value_biases;
  int bits = 0;
  int group_size = 0;
};

/// One row of a step: which packed tokens are its own, and which columns they
/// may see. The ranges together hold consecutive positions in temporal order
/// and end with the step's newest token, at position
/// first_position + num_tokens - 1.
struct RowView {
  int planes = 0;         // index into KVView::planes
  int plane_row = 0;      // index on the planes' batch axis
  int first_token = 0;    // index of its first token among the packed ones
  int num_tokens = 0;     // new tokens of this step
  int first_position = 0; // absolute position of the first of them
  std::array<ColumnRange, 2> ranges;
};

/// What attention may read in one step. Rows may share planes or own some;
/// planes differ in B, S and how they are stored, but not in Hkv and D. The new
/// tokens are already stored. A query at position p sees the positions
/// max(0, p - window + 1) .. p that the ranges hold; window 0 means no limit.
struct KVView {
  std::vector<KVPlanes> planes;
  std::vector<RowView> rows;
  int window = 0;
};

/// Options of attention(). `scale` multiplies q.k; `logit_softcap` c > 0 maps
/// scores s to c * tanh(s / c). sinks: [Hq] float32, one extra score per head
/// that takes part in the softmax's sum and has no value.
struct AttentionOptions {
  float scale = 1.0F;
  float logit_softcap = 0.0F;
  std::optional<mx::array> sinks;
};

/// Attends every packed query to its row's visible positions.
/// queries: [T, Hq, D] float32, T = sum of num_tokens, Hq a multiple of Hkv;
/// D <= 512. Returns [T, Hq * D] float32.
/// A query's result depends only on its own position and the visible bytes:
/// the online softmax walks blocks and spans cut at fixed absolute positions,
/// so the bits are the same in any chunking, batch, thread count and ring
/// rotation. (Up to values of unseen columns that aren't finite: within a step
/// they may be multiplied by 0.)
/// Throws std::invalid_argument when shapes, dtypes or ranges don't fit.
/// Source: Milakov & Gimelshein 2018 (online softmax), Dao et al. 2022
/// (blocking), Dao et al. 2023 (Flash-Decoding: spans of one row in parallel).
mx::array attention(
    const mx::array& queries,
    const KVView& view,
    const AttentionOptions& options);

} // namespace sheave::kernels
