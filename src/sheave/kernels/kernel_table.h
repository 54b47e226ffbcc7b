// KernelTable: the kernels of one CPU target as raw functions. No MLX and no
// allocation inside them; every pointer is to row-contiguous float32 unless
// said otherwise.
#pragma once

#include <cstddef>
#include <cstdint>

#include "sheave/kernels/activations/gate_kind.h"
#include "sheave/kernels/packed_layout.h"
#include "sheave/kernels/weight_format.h"

namespace sheave::kernels {

/// Float types that scales and cache planes may have.
enum class FloatType { kF32, kF16, kBF16 };

/// Rows of a stored weight. For kAffine, data, scales and biases are MLX's
/// three arrays.
struct WeightRows {
  WeightFormat format;
  const uint8_t* data;
  size_t row_bytes;
  int in_features;
  int bits;
  int group_size;
  FloatType scale_type;
  const void* scales;
  const void* biases;
};

/// Lanes of every sum: element k of a dot product goes to lane k mod kSumLanes,
/// on every target, and lanes are added up in one fixed order. So a sum's bits
/// depend on its elements only.
constexpr int kSumLanes = 16;

/// n rounded up to whole lanes.
constexpr int padded(int n) {
  return (n + kSumLanes - 1) / kSumLanes * kSumLanes;
}

/// out[m, n] = sum_k x[m, k] w[n, k] + bias[n] for n in [n_begin, n_end).
/// x: [M, padded(K)], zeros after K. out: [M, N]. scratch: kLinearRows *
/// padded(K) floats, aligned to 64 bytes.
struct LinearTask {
  const float* x;
  int m;
  WeightRows weight;
  const float* bias; // null for none
  float* out;
  int n;
  int n_begin;
  int n_end;
  float* scratch;
};
constexpr int kLinearRows = 4;

/// Tokens whose quants lie side by side: what a kernel multiplies at once.
constexpr int kTokenTile = 16;

/// Activations as 8-bit integers: x = scale * q for each 32 columns, q within
/// [-127, 127]. scale is NaN where a column isn't finite. Tokens lie in tiles
/// of kTokenTile; places of the last tile that have no token hold anything.
struct QuantizedTokens {
  int8_t* quants; // [tiles, K / 32, kTokenTile, 32]
  float* scales;  // [tiles, K / 32, kTokenTile]
  int32_t* sums;  // [tiles, K / 16, kTokenTile]: of the quants of 16 columns
  int m;
  int k;
};

/// out[m, n] = sum_k x[m, k] w[n, k] (+ bias[n]) (+ residual[m, n]) for the
/// rows of the panels [panel_begin, panel_end) and the tokens [m_begin,
/// m_end), m_begin a multiple of kTokenTile. starts and bias_sums: [tiles, K /
/// sum_columns, kTokenTile], what each integer sum begins with, and scale *
/// sum of quants for the biases; see packed_start_factor.
struct PackedTask {
  PackedLayout layout;
  const uint8_t* panels;
  size_t panel_bytes;
  size_t scale_bytes;
  int panel_begin;
  int panel_end;
  QuantizedTokens x;
  const int32_t* starts;
  const float* bias_sums;
  int m_begin;
  int m_end;
  float* out; // from token m_begin and panel 0 on, rows out_stride apart
  size_t out_stride;
  int n;
  const float* bias;     // null for none
  const float* residual; // null for none; laid out as out
  float* scratch;        // packed_scratch_floats(k), aligned to 64 bytes
};

/// Floats of scratch that a PackedTask of k columns needs.
constexpr size_t packed_scratch_floats(int k) {
  return 2 * static_cast<size_t>(kPanelRows) * static_cast<size_t>(k / 16);
}

/// Stored keys or values of one row of the batch and one K/V head: [S, D].
struct PlaneRows {
  const uint8_t* data;
  const uint8_t* scales; // of each group of a row; null where not quantized
  const uint8_t* biases;
};

/// What attention of one tile of queries needs: some tokens of one row of the
/// batch, all query heads of one K/V head.
struct AttentionTile {
  const float* queries; // [T, Hq, D]
  float* out;           // [T, Hq, D]
  const float* sinks;   // [Hq] or null
  PlaneRows keys;
  PlaneRows values;
  FloatType plane_type; // of the elements, or else of scales and biases
  int bits;             // 4 or 8 where quantized, else 0
  int group_size;
  int query_heads;     // Hq
  int first_head;      // first query head of this K/V head
  int group;           // query heads per K/V head
  int head_dim;        // D
  int first_token;     // packed index of the tile's first token
  int num_tokens;      // tokens of the tile
  int first_position;  // position of the first of them
  int oldest_position; // position of the first column in range
  int range_begin[2];  // physical columns in temporal order
  int range_size[2];
  int window; // 0 for none
  float scale;
  float softcap;
  float* scratch; // attention_scratch_floats()
};

/// Keys and values are walked in blocks of this many absolute positions.
constexpr int kAttentionBlock = 64;
/// The online softmax starts afresh in each span of this many absolute
/// positions. A tile's result is defined as its spans' sums, merged in
/// ascending order; so spans may be computed apart.
constexpr int kAttentionSpan = 512;
/// Most (token, head) pairs of a tile.
constexpr int kAttentionPairs = 64;

/// The oldest position that any query of the tile sees.
constexpr int oldest_position_seen(const AttentionTile& tile) {
  const int oldest =
      tile.window > 0 ? tile.first_position - tile.window + 1 : 0;
  return oldest > 0 ? oldest : 0;
}

/// The spans that the tile sees: [first_span, end_span).
constexpr int first_span(const AttentionTile& tile) {
  return oldest_position_seen(tile) / kAttentionSpan;
}
constexpr int end_span(const AttentionTile& tile) {
  return (tile.first_position + tile.num_tokens - 1) / kAttentionSpan + 1;
}

/// Floats of the sums of some pairs over one span.
constexpr size_t attention_sums_floats(int pairs, int head_dim) {
  const auto d = static_cast<size_t>(padded(head_dim));
  return static_cast<size_t>(pairs) * d +
         2 * static_cast<size_t>(padded(pairs));
}

/// Floats of scratch that a tile needs.
constexpr size_t attention_scratch_floats(int head_dim) {
  const auto d = static_cast<size_t>(padded(head_dim));
  return (kAttentionPairs + kAttentionBlock + kSumLanes) * d +
         kAttentionPairs * (kAttentionBlock + kSumLanes + 2) +
         2 * attention_sums_floats(kAttentionPairs, head_dim);
}

struct KernelTable {
  const char* name;
  void (*linear)(const LinearTask& task);
  void (*packed_linear)(const PackedTask& task);
  /// An integer sum begins with this times the sum of the quants, which
  /// corrects for the zero point and for how the target reads bytes.
  int (*packed_start_factor)(const PackedLayout& layout);
  /// One token's K floats, a multiple of 32, to its place among `tokens`.
  void (*quantize_token)(
      const float* x,
      int token,
      const QuantizedTokens& tokens);
  /// n floats to `type`, rounded to nearest, ties to even.
  void (*store_floats)(FloatType type, const float* x, int n, uint8_t* out);
  /// Row `row` as float32: out[in_features], scratch as for linear unneeded.
  void (*decode_row)(const WeightRows& weight, int row, float* out);
  void (*rms_norm)(
      const float* x,
      const float* weight,
      float eps,
      int dims,
      float* out);
  void (*swiglu)(const float* gate, const float* up, int n, float* out);
  void (*geglu_tanh)(const float* gate, const float* up, int n, float* out);
  auto gate(GateKind kind) const {
    return kind == GateKind::kSwiglu ? swiglu : geglu_tanh;
  }
  float (*largest_logit)(const float* logits, int n);
  int (*find_logits)(
      const float* logits,
      int n,
      float threshold,
      int capacity,
      int32_t* indices,
      int* next);
  float (*sum_exp)(const float* logits, int n, float offset);
  void (*exp_logits)(
      const float* logits,
      int n,
      float offset,
      float scale,
      float* out);
  void (*attention)(const AttentionTile& tile);
  /// The same in two steps: each span's sums, of attention_sums_floats() of the
  /// tile's pairs, in any order; then the result, from the sums of all spans
  /// one after another.
  void (*attention_span)(const AttentionTile& tile, int span, float* sums);
  void (*attention_merge)(const AttentionTile& tile, float* sums);
};

/// The tables of the targets compiled in; null where the processor's family
/// doesn't have the target.
const KernelTable* base_table();
const KernelTable* avx2_table();
const KernelTable* avx512_vnni_table();

} // namespace sheave::kernels
