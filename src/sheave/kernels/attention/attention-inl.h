// Attention of one tile: some tokens of a row, all query heads of one K/V
// head. Plan: walk the visible positions in blocks cut at multiples of
// kAttentionBlock. For each block take all scores of the tile, then for each
// (token, head) pair update the running maximum, total and weighted values
// (online softmax). The sums start afresh in each span of kAttentionSpan
// positions; those of a tile's spans are merged in ascending order, whoever
// computed them.
//
// A pair's result depends on nothing but its own query and the columns it
// sees: columns it doesn't see get weight 0, blocks and spans it doesn't see at
// all leave it untouched, and every sum runs in the order of positions.

static_assert(kAttentionSpan % kAttentionBlock == 0);
static_assert(kAttentionBlock % kKeyChunk == 0);

/// Tiles of fewer pairs score keys as they are stored instead of transposed,
/// and read 16-bit rows in place, or convert few rows at a time, which then are
/// still in the first cache.
constexpr int kFewPairs = 8;

/// Views into the tile's scratch memory.
struct AttentionScratch {
  float* queries; // [pairs, D padded], scaled
  float* rows;    // [kAttentionBlock, D padded]: keys or values
  float* panel;   // [D padded, kKeyChunk]: keys transposed
  float* scores;  // [pairs, kAttentionBlock]
  BlockSums block;
  AttentionSums span;
  AttentionSums all;
};

SHEAVE_KERNEL_INLINE AttentionScratch
divide_scratch(float* scratch, int head_dim) {
  const int width = padded(head_dim);
  const size_t sums = attention_sums_floats(kAttentionPairs, head_dim);
  AttentionScratch s;
  s.queries = scratch;
  s.rows = s.queries + kAttentionPairs * width;
  s.panel = s.rows + kAttentionBlock * width;
  s.scores = s.panel + kKeyChunk * width;
  s.block.lanes = s.scores + kAttentionPairs * kAttentionBlock;
  s.block.shifts = s.block.lanes + kAttentionPairs * kSumLanes;
  s.block.factors = s.block.shifts + kAttentionPairs;
  float* rest = s.block.factors + kAttentionPairs;
  s.span = divide_sums(rest, kAttentionPairs, width);
  s.all = divide_sums(rest + sums, kAttentionPairs, width);
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

SHEAVE_KERNEL_INLINE int smaller_of(int a, int b) {
  return a < b ? a : b;
}

SHEAVE_KERNEL_INLINE int larger_of(int a, int b) {
  return a > b ? a : b;
}

/// The keys of the block at position `block` that a pair sees.
SHEAVE_KERNEL_INLINE KeyRange
keys_seen(const AttentionTile& tile, int block, int pair) {
  const int position = tile.first_position + pair / tile.group - block;
  const int oldest = tile.window > 0 ? position - tile.window + 1 : 0;
  return {larger_of(oldest, 0), smaller_of(position + 1, kAttentionBlock)};
}

/// Pairs first .. end - 1 of a tile.
struct PairRange {
  int first;
  int end;
};

/// The pairs that see anything of positions [begin, end).
SHEAVE_KERNEL_INLINE PairRange
pairs_seeing(const AttentionTile& tile, int begin, int end) {
  const int first = larger_of(begin - tile.first_position, 0);
  const int tokens = tile.window > 0
                         ? smaller_of(
                               end - 1 + tile.window - tile.first_position,
                               tile.num_tokens)
                         : tile.num_tokens;
  return {first * tile.group, larger_of(first, tokens) * tile.group};
}

/// A block's first position, the pairs that see some of it, and the keys that
/// any of them sees. Key j of a block, its score and its weight stand at index
/// j.
struct Block {
  int position;
  PairRange pairs;
  KeyRange keys;
};

SHEAVE_KERNEL_INLINE Block block_at(const AttentionTile& tile, int position) {
  const PairRange pairs =
      pairs_seeing(tile, position, position + kAttentionBlock);
  return {
      position,
      pairs,
      {keys_seen(tile, position, pairs.first).begin,
       keys_seen(tile, position, pairs.end - 1).end}};
}

/// The scores of the pairs with a chunk of keys, P pairs at a time as long as
/// there are so many.
template <int P, typename Rows>
SHEAVE_KERNEL_INLINE void score_few(
    const AttentionScratch& s,
    const Rows& keys,
    PairRange pairs,
    int width,
    float* scores) {
  for (; pairs.first + P <= pairs.end; pairs.first += P) {
    score_chunk_rows<P>(
        s.queries + static_cast<size_t>(pairs.first) * width,
        keys,
        width,
        scores + pairs.first * kAttentionBlock);
  }
  if constexpr (P > 1) {
    score_few<P - 1>(s, keys, pairs, width, scores);
  }
}

template <int P>
SHEAVE_KERNEL_INLINE void score_many(
    const AttentionScratch& s,
    PairRange pairs,
    int width,
    float* scores) {
  for (; pairs.first + P <= pairs.end; pairs.first += P) {
    score_panel<P>(
        s.queries + static_cast<size_t>(pairs.first) * width,
        s.panel,
        width,
        scores + pairs.first * kAttentionBlock);
  }
  if constexpr (P > 1) {
    score_many<P - 1>(s, pairs, width, scores);
  }
}

/// Scores of a few pairs with the keys of positions [begin, end), which the
/// chunk at position `chunk` holds.
SHEAVE_KERNEL_INLINE void score_chunk_of_few(
    const AttentionTile& tile,
    const KeyRange& positions,
    int chunk,
    const PairRange& pairs,
    int width,
    const AttentionScratch& s,
    float* scores) {
  const auto stride = static_cast<size_t>(width);
  const uint8_t* stored =
      positions.end - positions.begin == kKeyChunk
          ? stored_run(tile, tile.keys, chunk, chunk + kKeyChunk, width)
          : nullptr;
  if (stored == nullptr) {
    load_positions(
        tile,
        tile.keys,
        positions.begin,
        positions.end,
        width,
        s.rows + (positions.begin - chunk) * stride);
    score_few<4>(s, StagedRows{s.rows, stride}, pairs, width, scores);
  } else if (tile.plane_type == FloatType::kF16) {
    const StoredRows<FloatType::kF16> keys = {stored, stride};
    score_few<4>(s, keys, pairs, width, scores);
  } else {
    const StoredRows<FloatType::kBF16> keys = {stored, stride};
    score_few<4>(s, keys, pairs, width, scores);
  }
}

/// scores[pair, j] = q . k for all chunks of keys and the pairs that see some
/// of the chunk. Keys of a chunk beyond the block's get scores without meaning.
SHEAVE_KERNEL_APART void score_block(
    const AttentionTile& tile,
    const Block& block,
    int width,
    const AttentionScratch& s) {
  const bool few = tile.num_tokens * tile.group < kFewPairs;
  const int last = block.position + block.keys.end;
  for (int j = block.keys.begin / kKeyChunk * kKeyChunk; j < block.keys.end;
       j += kKeyChunk) {
    const int chunk = block.position + j;
    const int begin = larger_of(block.position + block.keys.begin, chunk);
    const int end = smaller_of(last, chunk + kKeyChunk);
    const PairRange pairs = pairs_seeing(tile, begin, end);
    float* scores = s.scores + j;
    if (few) {
      score_chunk_of_few(tile, {begin, end}, chunk, pairs, width, s, scores);
      continue;
    }
    float* rows = s.rows + static_cast<size_t>(begin - chunk) * width;
    load_positions(tile, tile.keys, begin, end, width, rows);
    make_panel(s.rows, width, s.panel);
    score_many<kLanes / 4>(s, pairs, width, scores);
  }
}

/// Scores to weights; the maxima and totals follow.
SHEAVE_KERNEL_APART void weigh_block(
    const AttentionTile& tile,
    const Block& block,
    const AttentionScratch& s,
    const AttentionSums& sums) {
  const int pairs = tile.num_tokens * tile.group;
  for (int i = 0; i < padded(pairs) * kLanes; i += kLanes) {
    store(s.block.lanes + i, splat(kNegativeInfinity));
  }
  for (int pair = block.pairs.first; pair < block.pairs.end; ++pair) {
    const KeyRange seen = keys_seen(tile, block.position, pair);
    float* scores = s.scores + pair * kAttentionBlock;
    store(
        s.block.lanes + pair * kLanes,
        mask_scores(scores, seen, tile.softcap));
  }
  raise_maxima(s.block, pairs, sums);
  for (int i = 0; i < padded(pairs) * kLanes; i += kLanes) {
    store(s.block.lanes + i, splat(0.0F));
  }
  for (int pair = block.pairs.first; pair < block.pairs.end; ++pair) {
    const KeyRange seen = keys_seen(tile, block.position, pair);
    float* scores = s.scores + pair * kAttentionBlock;
    const float shift = s.block.shifts[pair];
    store(
        s.block.lanes + pair * kLanes,
        weigh_scores(scores, block.keys, seen, shift));
  }
  raise_totals(s.block, pairs, sums);
}

/// Adds the values of keys [rows.begin, rows.end), P pairs at a time as long as
/// there are so many.
template <int P, typename Rows>
SHEAVE_KERNEL_INLINE void add_rows(
    const AttentionTile& tile,
    const Block& block,
    PairRange pairs,
    const KeyRange& rows,
    const Rows& values,
    const AttentionScratch& s,
    const AttentionSums& sums) {
  for (; pairs.first + P <= pairs.end; pairs.first += P) {
    const int pair = pairs.first;
    const KeyRange first = keys_seen(tile, block.position, pair);
    const KeyRange last = keys_seen(tile, block.position, pair + P - 1);
    const KeyRange keys = {
        larger_of(first.begin, rows.begin),
        smaller_of(last.end, rows.end)};
    add_values<P>(
        s.scores + pair * kAttentionBlock,
        values,
        rows.begin,
        keys,
        s.block.factors + pair,
        sums.values + pair * values.width);
  }
  if constexpr (P > 1) {
    add_rows<P - 1>(tile, block, pairs, rows, values, s, sums);
  }
}

/// The block's weighted values.
SHEAVE_KERNEL_APART void add_block_values(
    const AttentionTile& tile,
    const Block& block,
    int width,
    const AttentionScratch& s,
    const AttentionSums& sums) {
  const bool few = tile.num_tokens * tile.group < kFewPairs;
  const int step = few ? kKeyChunk : kAttentionBlock;
  const auto stride = static_cast<size_t>(width);
  for (int j = block.keys.begin; j < block.keys.end; j += step) {
    const KeyRange rows = {j, smaller_of(j + step, block.keys.end)};
    const int begin = block.position + rows.begin;
    const int end = block.position + rows.end;
    const uint8_t* stored =
        few ? stored_run(tile, tile.values, begin, end, width) : nullptr;
    if (stored == nullptr) {
      load_positions(tile, tile.values, begin, end, width, s.rows);
      const StagedRows values = {s.rows, stride};
      add_rows<4>(tile, block, block.pairs, rows, values, s, sums);
    } else if (tile.plane_type == FloatType::kF16) {
      const StoredRows<FloatType::kF16> values = {stored, stride};
      add_rows<4>(tile, block, block.pairs, rows, values, s, sums);
    } else {
      const StoredRows<FloatType::kBF16> values = {stored, stride};
      add_rows<4>(tile, block, block.pairs, rows, values, s, sums);
    }
    for (int pair = block.pairs.first; pair < block.pairs.end; ++pair) {
      s.block.factors[pair] = 1.0F; // the sums so far have been scaled
    }
  }
}

/// The sums of one span. The queries are loaded.
SHEAVE_KERNEL_APART void sum_span(
    const AttentionTile& tile,
    int span,
    const AttentionScratch& s,
    const AttentionSums& sums) {
  const int width = padded(tile.head_dim);
  clear_sums(sums, tile.num_tokens * tile.group, width);
  const int oldest =
      larger_of(oldest_position_seen(tile), span * kAttentionSpan);
  const int end = smaller_of(
      tile.first_position + tile.num_tokens,
      (span + 1) * kAttentionSpan);
  for (int position = oldest / kAttentionBlock * kAttentionBlock;
       position < end;
       position += kAttentionBlock) {
    const Block block = block_at(tile, position);
    score_block(tile, block, width, s);
    weigh_block(tile, block, s, sums);
    add_block_values(tile, block, width, s, sums);
  }
}

/// Empty sums; a sink is a score without a value that has been seen already.
SHEAVE_KERNEL_INLINE void start_sums(
    const AttentionTile& tile,
    const AttentionSums& sums) {
  const int pairs = tile.num_tokens * tile.group;
  clear_sums(sums, pairs, padded(tile.head_dim));
  for (int pair = 0; tile.sinks != nullptr && pair < pairs; ++pair) {
    sums.maxima[pair] = tile.sinks[tile.first_head + pair % tile.group];
    sums.totals[pair] = 1.0F;
  }
}

/// Writes the tile's results.
SHEAVE_KERNEL_INLINE void store_attended(
    const AttentionTile& tile,
    const AttentionSums& sums) {
  const auto width = static_cast<size_t>(padded(tile.head_dim));
  for (int token = 0; token < tile.num_tokens; ++token) {
    for (int head = 0; head < tile.group; ++head) {
      const int pair = token * tile.group + head;
      const float inverse = 1.0F / sums.totals[pair];
      const size_t at =
          static_cast<size_t>(tile.first_token + token) * tile.query_heads +
          tile.first_head + head;
      const float* from = sums.values + pair * width;
      for (int i = 0; i < tile.head_dim; ++i) {
        tile.out[at * tile.head_dim + i] = from[i] * inverse;
      }
    }
  }
}

void attention(const AttentionTile& tile) {
  const int width = padded(tile.head_dim);
  const int pairs = tile.num_tokens * tile.group;
  const AttentionScratch s = divide_scratch(tile.scratch, tile.head_dim);
  load_queries(tile, width, s.queries);
  start_sums(tile, s.all);
  for (int span = first_span(tile); span < end_span(tile); ++span) {
    sum_span(tile, span, s, s.span);
    merge_sums(s.span, pairs, width, s.all);
  }
  store_attended(tile, s.all);
}

void attention_span(const AttentionTile& tile, int span, float* sums) {
  const int width = padded(tile.head_dim);
  const int pairs = tile.num_tokens * tile.group;
  const AttentionScratch s = divide_scratch(tile.scratch, tile.head_dim);
  load_queries(tile, width, s.queries);
  sum_span(tile, span, s, divide_sums(sums, pairs, width));
}

void attention_merge(const AttentionTile& tile, float* sums) {
  const int width = padded(tile.head_dim);
  const int pairs = tile.num_tokens * tile.group;
  const AttentionScratch s = divide_scratch(tile.scratch, tile.head_dim);
  start_sums(tile, s.all);
  for (int span = first_span(tile); span < end_span(tile); ++span) {
    merge_sums(divide_sums(sums, pairs, width), pairs, width, s.all);
    sums += attention_sums_floats(pairs, tile.head_dim);
  }
  store_attended(tile, s.all);
}
