// Attention of one tile: some tokens of a row, all query heads of one K/V
// head. Plan: walk the visible positions in blocks cut at multiples of
// kAttentionBlock. For each block copy its keys and values to float32, take
// all scores of the tile, then for each (token, head) pair update the running
// maximum, sum and weighted values (online softmax).
//
// A pair's result depends on nothing but its own query and the columns it
// sees: columns it doesn't see get weight 0, blocks it doesn't see at all
// leave it untouched, and every sum runs in the order of positions.

constexpr float kNegativeInfinity = -__builtin_inff();

/// Views into the tile's scratch memory.
struct AttentionScratch {
  float* keys;    // [kAttentionBlock, D padded]
  float* values;  // [kAttentionBlock, D padded]
  float* queries; // [pairs, D padded]
  float* sums;    // [pairs, D padded]: weighted values so far
  float* scores;  // [pairs, kAttentionBlock]
  float* maxima;  // [pairs]
  float* totals;  // [pairs]
};

SHEAVE_KERNEL_INLINE AttentionScratch
divide_scratch(float* scratch, size_t width) {
  AttentionScratch s;
  s.keys = scratch;
  s.values = s.keys + kAttentionBlock * width;
  s.queries = s.values + kAttentionBlock * width;
  s.sums = s.queries + kAttentionPairs * width;
  s.scores = s.sums + kAttentionPairs * width;
  s.maxima = s.scores + kAttentionPairs * kAttentionBlock;
  s.totals = s.maxima + kAttentionPairs;
  return s;
}

/// The queries of all pairs, token by token, scaled.
SHEAVE_KERNEL_INLINE void
load_queries(const AttentionTile& tile, int width, float* queries) {
  for (int token = 0; token < tile.num_tokens; ++token) {
    for (int head = 0; head < tile.group; ++head) {
      const size_t at =
          static_cast<size_t>(tile.first_token + token) * tile.query_heads +
          tile.first_head + head;
      const float* from = tile.queries + at * tile.head_dim;
      float* to =
          queries + static_cast<size_t>(token * tile.group + head) * width;
      for (int i = 0; i < tile.head_dim; ++i) {
        to[i] = from[i] * tile.scale;
      }
      for (int i = tile.head_dim; i < width; ++i) {
        to[i] = 0.0F;
      }
    }
  }
}

/// The part of a block that the tile sees: positions block + begin .. block +
/// end - 1. Key j of a block, its score and its weight stand at index j.
struct BlockPart {
  int block;
  int begin;
  int end;
};

/// Copies the part's keys and values to float32.
SHEAVE_KERNEL_INLINE void load_block(
    const AttentionTile& tile,
    const BlockPart& part,
    int width,
    const AttentionScratch& s) {
  const int begin = part.block + part.begin;
  const int end = part.block + part.end;
  const auto row = static_cast<size_t>(part.begin) * width;
  load_positions(tile, tile.keys, begin, end, width, s.keys + row);
  load_positions(tile, tile.values, begin, end, width, s.values + row);
}

/// scores[pair, j] = q . k for all pairs and the part's keys.
SHEAVE_KERNEL_INLINE void score_block(
    const AttentionScratch& s,
    int pairs,
    const BlockPart& part,
    int width) {
  const auto stride = static_cast<size_t>(width);
  int j = part.begin;
  for (; j + kTileN <= part.end; j += kTileN) {
    dot_rows<kTileN>(
        s.queries,
        stride,
        pairs,
        s.keys + j * stride,
        stride,
        width,
        {s.scores + j, kAttentionBlock, nullptr});
  }
  for (; j < part.end; ++j) {
    dot_rows<1>(
        s.queries,
        stride,
        pairs,
        s.keys + j * stride,
        stride,
        width,
        {s.scores + j, kAttentionBlock, nullptr});
  }
}

SHEAVE_KERNEL_INLINE VF softcap_lanes(VF score, VF cap) {
  // cap * tanh(score / cap), tanh(u) = 2 sigmoid(2 u) - 1
  const VF u = score / cap;
  const VF two = splat(2.0F);
  return cap * (times_sigmoid(two, two * u) - splat(1.0F));
}

/// Turns a pair's scores of a block into weights, in place: columns outside
/// [begin, end) get 0. Returns the factor for what was summed before.
SHEAVE_KERNEL_INLINE float weigh_scores(
    float* scores,
    int begin,
    int end,
    float softcap,
    float& maximum,
    float& total) {
  if (softcap > 0) {
    for (int j = 0; j < kAttentionBlock; j += kLanes) {
      store(scores + j, softcap_lanes(load(scores + j), splat(softcap)));
    }
  }
  float block_maximum = kNegativeInfinity;
  for (int j = 0; j < kAttentionBlock; ++j) {
    const bool seen = j >= begin && j < end;
    scores[j] = seen ? scores[j] : kNegativeInfinity;
    block_maximum = scores[j] > block_maximum ? scores[j] : block_maximum;
  }
  const float new_maximum = block_maximum > maximum ? block_maximum : maximum;
  if (new_maximum == kNegativeInfinity) { // nothing to compare with yet
    for (int j = 0; j < kAttentionBlock; ++j) {
      scores[j] = 0.0F;
    }
    return 1.0F;
  }
  float factors[kLanes] = {};
  factors[0] = maximum - new_maximum;
  store(factors, exp_lanes(load(factors)));
  VF sums[kParts] = {};
  for (int j = 0; j < kAttentionBlock; j += kSumLanes) {
    for (int part = 0; part < kParts; ++part) {
      float* at = scores + j + part * kLanes;
      const VF weights = exp_lanes(load(at) - splat(new_maximum));
      store(at, weights);
      sums[part] = sums[part] + weights;
    }
  }
  maximum = new_maximum;
  total = total * factors[0] + sum_lanes(sums);
  return factors[0];
}

/// sums[pair] = sums[pair] * factor + sum_j scores[pair, j] values[j], j
/// ascending, for P pairs.
template <int P>
SHEAVE_KERNEL_INLINE void add_values(
    const AttentionScratch& s,
    int pair,
    const float* factors,
    const BlockPart& part,
    int width) {
  const auto stride = static_cast<size_t>(width);
  constexpr int kColumns = 2; // vectors of the head dim at a time
  for (int d = 0; d < width; d += kLanes * kColumns) {
    const int columns = d + kLanes < width ? kColumns : 1;
    VF sums[P][kColumns];
    for (int p = 0; p < P; ++p) {
      for (int c = 0; c < kColumns; ++c) {
        const float* from =
            s.sums + (pair + p) * stride + d + (c < columns ? c : 0) * kLanes;
        sums[p][c] = load(from) * splat(factors[p]);
      }
    }
    for (int j = part.begin; j < part.end; ++j) {
      const float* row = s.values + j * stride + d;
      const VF value0 = load(row);
      const VF value1 = load(row + (columns - 1) * kLanes);
      for (int p = 0; p < P; ++p) {
        const VF weight = splat(s.scores[(pair + p) * kAttentionBlock + j]);
        sums[p][0] = fmadd(weight, value0, sums[p][0]);
        sums[p][1] = fmadd(weight, value1, sums[p][1]);
      }
    }
    for (int p = 0; p < P; ++p) {
      for (int c = 0; c < columns; ++c) {
        store(s.sums + (pair + p) * stride + d + c * kLanes, sums[p][c]);
      }
    }
  }
}

/// Writes the tile's results.
SHEAVE_KERNEL_INLINE void store_attended(
    const AttentionTile& tile,
    int width,
    const AttentionScratch& s) {
  for (int token = 0; token < tile.num_tokens; ++token) {
    for (int head = 0; head < tile.group; ++head) {
      const int pair = token * tile.group + head;
      const float inverse = 1.0F / s.totals[pair];
      const size_t at =
          static_cast<size_t>(tile.first_token + token) * tile.query_heads +
          tile.first_head + head;
      const float* from = s.sums + static_cast<size_t>(pair) * width;
      for (int i = 0; i < tile.head_dim; ++i) {
        tile.out[at * tile.head_dim + i] = from[i] * inverse;
      }
    }
  }
}

/// Empty sums; a sink is a score without a value that has been seen already.
SHEAVE_KERNEL_INLINE void start_sums(
    const AttentionTile& tile,
    int pairs,
    int width,
    const AttentionScratch& s) {
  for (int pair = 0; pair < pairs; ++pair) {
    const bool sink = tile.sinks != nullptr;
    s.maxima[pair] = sink ? tile.sinks[tile.first_head + pair % tile.group]
                          : kNegativeInfinity;
    s.totals[pair] = sink ? 1.0F : 0.0F;
    for (int i = 0; i < width; ++i) {
      s.sums[static_cast<size_t>(pair) * width + i] = 0.0F;
    }
  }
}

/// Scores, weights and weighted values of one block.
SHEAVE_KERNEL_INLINE void attend_block(
    const AttentionTile& tile,
    const BlockPart& part,
    int pairs,
    int width,
    const AttentionScratch& s) {
  load_block(tile, part, width, s);
  score_block(s, pairs, part, width);
  float factors[kAttentionPairs];
  for (int pair = 0; pair < pairs; ++pair) {
    const int position = tile.first_position + pair / tile.group - part.block;
    const int oldest = tile.window > 0 ? position - tile.window + 1 : 0;
    factors[pair] = weigh_scores(
        s.scores + pair * kAttentionBlock,
        oldest > part.begin ? oldest : part.begin,
        position + 1 < part.end ? position + 1 : part.end,
        tile.softcap,
        s.maxima[pair],
        s.totals[pair]);
  }
  int pair = 0;
  for (; pair + 4 <= pairs; pair += 4) {
    add_values<4>(s, pair, factors + pair, part, width);
  }
  for (; pair < pairs; ++pair) {
    add_values<1>(s, pair, factors + pair, part, width);
  }
}

void attention(const AttentionTile& tile) {
  const int width = padded(tile.head_dim);
  const int pairs = tile.num_tokens * tile.group;
  const AttentionScratch s =
      divide_scratch(tile.scratch, static_cast<size_t>(width));
  load_queries(tile, width, s.queries);
  start_sums(tile, pairs, width, s);
  const int end = tile.first_position + tile.num_tokens;
  const int windowed =
      tile.window > 0 ? tile.first_position - tile.window + 1 : 0;
  const int oldest =
      windowed > tile.oldest_position ? windowed : tile.oldest_position;
  for (int block = oldest / kAttentionBlock * kAttentionBlock; block < end;
       block += kAttentionBlock) {
    const BlockPart part = {
        block,
        oldest > block ? oldest - block : 0,
        end - block < kAttentionBlock ? end - block : kAttentionBlock};
    attend_block(tile, part, pairs, width, s);
  }
  store_attended(tile, width, s);
}
