#include "sheave/kernels/attention/attention.h"

#include <gtest/gtest.h>

#include <limits>
#include <stdexcept>
#include <vector>

#include "sheave/kernels/kernel_test_support.h"

namespace sheave::kernels {
namespace {

using testing::random_array;
using testing::same_bits;
using testing::worst_error;

class Attention : public testing::EachTarget {};

/// A row of `tokens` queries at the end of `columns` consecutive positions.
KVView one_row(
    const mx::array& keys,
    const mx::array& values,
    int columns,
    int first_position,
    int tokens,
    int window) {
  return {
      .planes = {{.keys = keys, .values = values}},
      .rows =
          {{.plane_row = 0,
            .first_token = 0,
            .num_tokens = tokens,
            .first_position = first_position,
            .ranges = {{{0, columns}, {columns, columns}}}}},
      .window = window};
}

struct Heads {
  int query;
  int key_value;
  int dim;
};

TEST_P(Attention, AgreesWithTheReference) {
  for (const Heads heads :
       {Heads{9, 3, 64}, Heads{4, 1, 256}, Heads{2, 2, 33}, Heads{8, 1, 80}}) {
    for (const int columns : {1, 2, 63, 64, 65, 200}) {
      for (const int tokens : {1, 2, 17, 70}) {
        if (tokens > columns) {
          continue;
        }
        for (const int window : {0, 5, 64}) {
          const int first = columns - tokens;
          const mx::Shape planes = {1, heads.key_value, 256, heads.dim};
          const KVView view = one_row(
              random_array(planes, 1),
              random_array(planes, 2),
              columns,
              first,
              tokens,
              window);
          const mx::array queries =
              random_array({tokens, heads.query, heads.dim}, 3);
          const AttentionOptions options = {.scale = 0.11F};
          const auto compute = [&] {
            return attention(queries, view, options);
          };
          const mx::array expected = testing::by_reference(GetParam(), compute);
          ASSERT_LT(worst_error(compute(), expected), 2e-5F)
              << heads.query << "/" << heads.key_value << "x" << heads.dim
              << ", " << columns << " columns, " << tokens << " tokens, window "
              << window;
        }
      }
    }
  }
}

TEST_P(Attention, KnowsSinksAndSoftcap) {
  const KVView view = one_row(
      random_array({1, 2, 100, 32}, 1),
      random_array({1, 2, 100, 32}, 2),
      100,
      90,
      10,
      0);
  const mx::array queries = random_array({10, 4, 32}, 3) * mx::array(4.0F);
  for (const float softcap : {0.0F, 5.0F}) {
    for (const bool sinks : {false, true}) {
      const auto compute = [&] {
        AttentionOptions options = {.scale = 0.5F, .logit_softcap = softcap};
        if (sinks) {
          options.sinks = random_array({4}, 4) * mx::array(3.0F);
        }
        return attention(queries, view, options);
      };
      const mx::array expected = testing::by_reference(GetParam(), compute);
      EXPECT_LT(worst_error(compute(), expected), 2e-5F)
          << "softcap " << softcap << ", sinks " << sinks;
    }
  }
}

TEST_P(Attention, ReadsHalfPrecisionPlanes) {
  for (const mx::Dtype dtype : {mx::float16, mx::bfloat16}) {
    const KVView view = one_row(
        mx::astype(random_array({1, 2, 70, 64}, 1), dtype),
        mx::astype(random_array({1, 2, 70, 64}, 2), dtype),
        70,
        60,
        10,
        0);
    const mx::array queries = random_array({10, 4, 64}, 3);
    const auto compute = [&] {
      return attention(queries, view, {.scale = 0.125F});
    };
    const mx::array expected = testing::by_reference(GetParam(), compute);
    EXPECT_LT(worst_error(compute(), expected), 2e-5F);
  }
}

TEST_P(Attention, GivesAQueryTheSameBitsInAnyChunkingAndOnAnyThreads) {
  const int total = 150;
  for (const int window : {0, 40}) {
    const mx::array keys = random_array({1, 2, total, 64}, 1);
    const mx::array values = random_array({1, 2, total, 64}, 2);
    const mx::array queries = random_array({total, 6, 64}, 3);
    const mx::array whole = attention(
        queries,
        one_row(keys, values, total, 0, total, window),
        {.scale = 0.125F});
    for (const int threads : {1, 2, 3}) {
      configure({.threads = threads, .target = GetParam()});
      for (const int chunk : {1, 7, 64, 149}) {
        for (int first = 0; first < total; first += chunk) {
          const int count = std::min(chunk, total - first);
          const mx::array part = attention(
              mx::slice(queries, {first, 0, 0}, {first + count, 6, 64}),
              one_row(keys, values, first + count, first, count, window),
              {.scale = 0.125F});
          ASSERT_TRUE(same_bits(
              part,
              mx::slice(whole, {first, 0}, {first + count, 6 * 64})))
              << "chunk " << chunk << " at " << first << ", window " << window;
        }
      }
    }
  }
}

TEST_P(Attention, GivesALateTokenTheSameBitsAsAWholePrefill) {
  constexpr int kTotal = 2001;
  for (const Heads heads : {Heads{9, 3, 64}, Heads{4, 1, 80}}) {
    for (const int window : {0, 700}) {
      const mx::Shape planes = {1, heads.key_value, kTotal, heads.dim};
      const mx::array keys = random_array(planes, 1);
      const mx::array values = random_array(planes, 2);
      const mx::array queries =
          random_array({kTotal, heads.query, heads.dim}, 3);
      const AttentionOptions options = {
          .scale = 0.125F,
          .sinks = random_array({heads.query}, 4)};
      const mx::array whole = attention(
          queries,
          one_row(keys, values, kTotal, 0, kTotal, window),
          options);
      const mx::array expected =
          mx::slice(whole, {kTotal - 1, 0}, {kTotal, heads.query * heads.dim});
      for (const int threads : {1, 2, 3}) {
        configure({.threads = threads, .target = GetParam()});
        const mx::array last = attention(
            mx::slice(
                queries,
                {kTotal - 1, 0, 0},
                {kTotal, heads.query, heads.dim}),
            one_row(keys, values, kTotal, kTotal - 1, 1, window),
            options);
        EXPECT_TRUE(same_bits(last, expected))
            << threads << " threads, window " << window;
      }
    }
  }
}

TEST_P(Attention, AgreesWithTheReferenceAcrossSpans) {
  for (const int columns : {511, 512, 513, 1030}) {
    for (const int tokens : {1, 3, 40}) {
      for (const int window : {0, 512, 600}) {
        const KVView view = one_row(
            random_array({1, 2, 1100, 64}, 1),
            random_array({1, 2, 1100, 64}, 2),
            columns,
            columns - tokens,
            tokens,
            window);
        const mx::array queries = random_array({tokens, 6, 64}, 3);
        const auto compute = [&] {
          return attention(
              queries,
              view,
              {.scale = 0.3F, .sinks = random_array({6}, 4)});
        };
        const mx::array expected = testing::by_reference(GetParam(), compute);
        ASSERT_LT(worst_error(compute(), expected), 2e-5F)
            << columns << " columns, " << tokens << " tokens, window "
            << window;
      }
    }
  }
}

TEST_P(Attention, GivesTheSameBitsFromARotatedRing) {
  // Positions 30..99 in order, and the same rotated within 70 columns.
  const mx::array keys = random_array({1, 2, 70, 32}, 1);
  const mx::array values = random_array({1, 2, 70, 32}, 2);
  const mx::array query = random_array({1, 4, 32}, 3);
  const AttentionOptions options = {.scale = 0.2F};
  const mx::array straight =
      attention(query, one_row(keys, values, 70, 99, 1, 70), options);
  for (const int shift : {1, 33, 69}) {
    KVView view = one_row(
        mx::roll(keys, shift, 2),
        mx::roll(values, shift, 2),
        70,
        99,
        1,
        70);
    view.rows[0].ranges = {{{shift, 70}, {0, shift}}};
    EXPECT_TRUE(same_bits(attention(query, view, options), straight));
  }
}

TEST_P(Attention, GivesRaggedRowsWhatEachGetsAlone) {
  const mx::array keys = random_array({3, 2, 90, 32}, 1);
  const mx::array values = random_array({3, 2, 90, 32}, 2);
  const mx::array queries = random_array({1 + 20 + 5, 4, 32}, 3);
  const AttentionOptions options = {.scale = 0.2F};
  KVView all = {
      .planes = {{.keys = keys, .values = values}},
      .rows = {},
      .window = 50};
  const int tokens[] = {1, 20, 5};
  const int ends[] = {90, 20, 61};
  const int plane_rows[] = {2, 0, 1};
  int first_token = 0;
  for (int r = 0; r < 3; ++r) {
    all.rows.push_back(
        {.plane_row = plane_rows[r],
         .first_token = first_token,
         .num_tokens = tokens[r],
         .first_position = ends[r] - tokens[r],
         .ranges = {{{0, ends[r]}, {ends[r], ends[r]}}}});
    first_token += tokens[r];
  }
  const mx::array together = attention(queries, all, options);
  for (const RowView& row : all.rows) {
    KVView alone = all;
    alone.rows = {row};
    alone.rows[0].first_token = 0;
    const int begin = row.first_token;
    const int end = begin + row.num_tokens;
    EXPECT_TRUE(same_bits(
        attention(
            mx::slice(queries, {begin, 0, 0}, {end, 4, 32}),
            alone,
            options),
        mx::slice(together, {begin, 0}, {end, 4 * 32})));
  }
}

TEST_P(Attention, ReadsHalfPrecisionPlanesAsTheValuesTheyStandFor) {
  for (const mx::Dtype dtype : {mx::float16, mx::bfloat16}) {
    for (const int dims : {64, 72, 256}) {
      for (const int tokens : {1, 2, 30}) {
        const mx::Shape shape = {1, 2, 170, dims};
        const mx::array keys = mx::astype(random_array(shape, 1), dtype);
        const mx::array values = mx::astype(random_array(shape, 2), dtype);
        KVView view = one_row(keys, values, 170, 300 - tokens, tokens, 130);
        view.rows[0].ranges = {{{77, 170}, {0, 77}}};
        const mx::array queries = random_array({tokens, 6, dims}, 3);
        const mx::array result = attention(queries, view, {.scale = 0.1F});
        view.planes[0] = {
            .keys = mx::astype(keys, mx::float32),
            .values = mx::astype(values, mx::float32)};
        EXPECT_TRUE(
            same_bits(attention(queries, view, {.scale = 0.1F}), result))
            << "D " << dims << ", " << tokens << " tokens";
      }
    }
  }
}

/// [1, 2, S, D] planes quantized, and the same as float32.
struct QuantizedCase {
  KVPlanes quantized;
  KVPlanes plain;
};

QuantizedCase quantized_case(
    int columns,
    int dims,
    int group_size,
    int bits,
    mx::Dtype scales,
    unsigned seed) {
  const mx::Shape shape = {1, 2, columns, dims};
  const auto quantize = [&](unsigned s) {
    auto parts = mx::quantize(random_array(shape, s), group_size, bits);
    parts[1] = mx::astype(parts[1], scales);
    parts[2] = mx::astype(parts[2], scales);
    return parts;
  };
  const auto plain = [&](const std::vector<mx::array>& parts) {
    return mx::dequantize(
        parts[0],
        mx::astype(parts[1], mx::float32),
        mx::astype(parts[2], mx::float32),
        group_size,
        bits);
  };
  const auto k = quantize(seed);
  const auto v = quantize(seed + 1);
  return {
      .quantized =
          {.keys = k[0],
           .values = v[0],
           .key_scales = k[1],
           .key_biases = k[2],
           .value_scales = v[1],
           .value_biases = v[2],
           .bits = bits,
           .group_size = group_size},
      .plain = {.keys = plain(k), .values = plain(v)}};
}

TEST_P(Attention, ReadsQuantizedPlanesAsTheValuesTheyStandFor) {
  struct Format {
    int bits;
    int group_size;
    int dims;
    mx::Dtype scales;
  };
  std::vector<Format> formats;
  for (const int bits : {4, 8}) {
    for (const int group_size : {32, 64, 128}) {
      for (const int dims : {group_size, 3 * group_size, 512}) {
        if (dims <= 512 && dims % group_size == 0) {
          formats.push_back({bits, group_size, dims, mx::float16});
        }
      }
    }
    formats.push_back({bits, 32, 64, mx::bfloat16});
    formats.push_back({bits, 64, 64, mx::float32});
  }
  for (const Format& f : formats) {
    // Rows of other lengths, the first rotated in its ring of 70 columns.
    const QuantizedCase a =
        quantized_case(70, f.dims, f.group_size, f.bits, f.scales, 1);
    const QuantizedCase b =
        quantized_case(40, f.dims, f.group_size, f.bits, f.scales, 5);
    KVView view = {
        .planes = {a.quantized, b.quantized},
        .rows =
            {{.planes = 0,
              .first_token = 0,
              .num_tokens = 1,
              .first_position = 99,
              .ranges = {{{33, 70}, {0, 33}}}},
             {.planes = 1,
              .first_token = 1,
              .num_tokens = 11,
              .first_position = 20,
              .ranges = {{{5, 36}, {36, 36}}}}},
        .window = 25};
    const mx::array queries = random_array({12, 6, f.dims}, 3);
    const auto compute = [&] {
      return attention(queries, view, {.scale = 0.1F});
    };
    const mx::array expected = testing::by_reference(GetParam(), compute);
    const mx::array result = compute();
    EXPECT_LT(worst_error(result, expected), 2e-5F)
        << f.bits << " bits, groups of " << f.group_size << ", D " << f.dims;
    view.planes = {a.plain, b.plain};
    EXPECT_TRUE(same_bits(compute(), result))
        << f.bits << " bits, groups of " << f.group_size << ", D " << f.dims;
  }
}

TEST_P(Attention, ReadsRowsFromPlanesOfTheirOwn) {
  const AttentionOptions options = {.scale = 0.2F};
  KVView all = {
      .planes =
          {{.keys = random_array({1, 2, 90, 32}, 1),
            .values = random_array({1, 2, 90, 32}, 2)},
           {.keys = mx::astype(random_array({2, 2, 30, 32}, 4), mx::float16),
            .values = mx::astype(random_array({2, 2, 30, 32}, 5), mx::float16)},
           quantized_case(50, 32, 32, 8, mx::float16, 6).quantized},
      .rows = {
          {.planes = 2,
           .first_token = 0,
           .num_tokens = 20,
           .first_position = 25,
           .ranges = {{{0, 45}, {45, 45}}}},
          {.planes = 0,
           .first_token = 20,
           .num_tokens = 1,
           .first_position = 80,
           .ranges = {{{0, 81}, {81, 81}}}},
          {.planes = 1,
           .plane_row = 1,
           .first_token = 21,
           .num_tokens = 3,
           .first_position = 27,
           .ranges = {{{0, 30}, {30, 30}}}}}};
  const mx::array queries = random_array({24, 4, 32}, 3);
  const mx::array together = attention(queries, all, options);
  for (const RowView& row : all.rows) {
    KVView alone = all;
    alone.rows = {row};
    alone.rows[0].first_token = 0;
    alone.rows[0].planes = 0;
    alone.planes = {all.planes[static_cast<size_t>(row.planes)]};
    const int begin = row.first_token;
    const int end = begin + row.num_tokens;
    EXPECT_TRUE(same_bits(
        attention(
            mx::slice(queries, {begin, 0, 0}, {end, 4, 32}),
            alone,
            options),
        mx::slice(together, {begin, 0}, {end, 4 * 32})));
  }
}

TEST_P(Attention, SurvivesNanAndInfinity) {
  mx::array queries = random_array({2, 2, 32}, 3);
  queries = mx::where(
      mx::greater(queries, mx::array(1.5F)),
      mx::array(std::numeric_limits<float>::infinity()),
      queries);
  mx::array result = attention(
      queries,
      one_row(
          random_array({1, 1, 20, 32}, 1),
          random_array({1, 1, 20, 32}, 2),
          20,
          18,
          2,
          0),
      {.scale = 1.0F});
  result.eval();
}

SHEAVE_TEST_EACH_TARGET(Attention);

TEST(AttentionCheck, RefusesWhatDoesNotFit) {
  const mx::array planes = mx::zeros({1, 2, 10, 32});
  const mx::array queries = mx::zeros({2, 4, 32});
  const KVView good = one_row(planes, planes, 10, 8, 2, 0);
  const AttentionOptions options = {};
  attention(queries, good, options).eval();
  EXPECT_THROW(
      attention(mx::zeros({2, 3, 32}), good, options),
      std::invalid_argument);
  EXPECT_THROW(
      attention(mx::zeros({3, 4, 32}), good, options),
      std::invalid_argument);
  EXPECT_THROW(
      attention(queries, one_row(planes, planes, 11, 9, 2, 0), options),
      std::invalid_argument);
  EXPECT_THROW(
      attention(queries, one_row(planes, planes, 9, 8, 2, 0), options),
      std::invalid_argument);
  EXPECT_THROW(
      attention(
          queries,
          one_row(planes, mx::zeros({1, 2, 9, 32}), 9, 7, 2, 0),
          options),
      std::invalid_argument);
  KVView view = good;
  view.rows[0].planes = 1; // there is only one
  EXPECT_THROW(attention(queries, view, options), std::invalid_argument);
  view = good;
  view.planes.push_back({.keys = planes, .values = mx::zeros({1, 3, 10, 32})});
  EXPECT_THROW(attention(queries, view, options), std::invalid_argument);
  view = good;
  view.planes[0].bits = 8; // plain arrays
  view.planes[0].group_size = 32;
  EXPECT_THROW(attention(queries, view, options), std::invalid_argument);
  EXPECT_THROW(
      attention(queries, good, {.scale = 1, .sinks = mx::zeros({3})}),
      std::invalid_argument);
}

} // namespace
} // namespace sheave::kernels
