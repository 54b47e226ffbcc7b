#include "sheave/kernels/quantized_linear/quantized_linear.h"

#include <gtest/gtest.h>

#include <limits>
#include <stdexcept>

#include "sheave/kernels/linear/linear.h"
#include "sheave/kernels/weight_test_support.h"

namespace sheave::kernels {
namespace {

using testing::affine_weight;
using testing::by_reference;
using testing::random_array;
using testing::random_weight;
using testing::same_bits;
using testing::worst_error;

class QuantizedLinear : public testing::EachTarget {
 protected:
  PackedWeight packed(WeightFormat format, int rows, int columns) {
    return pack(random_weight(format, rows, columns), slabs_);
  }

  /// The worst error against the same call composed of MLX's operations.
  template <typename Compute>
  float error_of(const Compute& compute) {
    return worst_error(compute(), by_reference(GetParam(), compute));
  }

  SlabAllocator slabs_;
};

/// Of float32 sums of some hundred products in another order.
constexpr float kSumError = 1e-4F;

/// Where a last-bit difference before rounding to a quant may move that quant.
constexpr float kQuantError = 3e-3F;

NormWeight norm_weight(int size) {
  return {.weight = random_array({size}, 77), .eps = 1e-5F};
}

TEST_P(QuantizedLinear, AgreesWithTheReferenceInEveryBlockFormat) {
  for (const WeightFormat format : testing::kBlockFormats) {
    for (const int n : {1, 15, 16, 17, 49}) {
      const PackedWeight weight = packed(format, n, 512);
      for (const int t : {1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 31}) {
        const mx::array x = random_array({t, 512}, 3);
        EXPECT_LT(
            error_of([&] { return quantized_linear(x, weight); }),
            kSumError)
            << weight_format_name(format) << " " << t << " x " << n;
      }
    }
  }
}

TEST_P(QuantizedLinear, AgreesWithTheReferenceForAffineWeights) {
  for (const int bits : {2, 3, 4, 5, 6, 8}) {
    for (const int group : {32, 64, 128}) {
      for (const mx::Dtype dtype : {mx::float32, mx::float16, mx::bfloat16}) {
        const PackedWeight weight =
            pack(affine_weight(33, 384, bits, group, dtype), slabs_);
        for (const int t : {1, 6, 19}) {
          const mx::array x = random_array({t, 384}, 4);
          EXPECT_LT(
              error_of([&] { return quantized_linear(x, weight); }),
              kSumError)
              << bits << " bits, groups of " << group << ", " << t;
        }
      }
    }
  }
}

TEST_P(QuantizedLinear, TakesScalesOfSixteenColumns) {
  // MLX quantizes no such groups itself: split groups of 32.
  Weight weight = affine_weight(20, 256, 4, 32, mx::float32);
  weight.group_size = 16;
  weight.scales = mx::repeat(*weight.scales, 2, 1);
  weight.biases = mx::repeat(*weight.biases, 2, 1);
  const PackedWeight narrow = pack(weight, slabs_);
  const mx::array x = random_array({5, 256}, 4);
  EXPECT_LT(error_of([&] { return quantized_linear(x, narrow); }), kSumError);
}

TEST_P(QuantizedLinear, IsCloseToTheExactProduct) {
  for (const WeightFormat format : testing::kBlockFormats) {
    const Weight weight = random_weight(format, 64, 1024);
    const mx::array x = random_array({4, 1024}, 3);
    const mx::array exact = linear(x, weight, {});
    const mx::array fast = quantized_linear(x, pack(weight, slabs_));
    const auto norm = [](const mx::array& a) {
      return testing::values(mx::sqrt(mx::sum(mx::square(a))))[0];
    };
    EXPECT_LT(norm(mx::subtract(fast, exact)) / norm(exact), 0.01F)
        << weight_format_name(format);
  }
}

TEST_P(QuantizedLinear, NormsAddsAndNormsAgain) {
  const PackedWeight weight = packed(WeightFormat::kQ4_1, 40, 96);
  const mx::array x = random_array({9, 96}, 3);
  const QuantizedLinearOptions options = {
      .norm = norm_weight(96),
      .bias = random_array({40}, 5),
      .output_norm = norm_weight(40),
      .residual = random_array({9, 40}, 6)};
  for (int parts = 0; parts < 16; ++parts) {
    QuantizedLinearOptions some = options;
    if ((parts & 1) == 0) {
      some.norm.reset();
    }
    if ((parts & 2) == 0) {
      some.bias.reset();
    }
    if ((parts & 4) == 0) {
      some.output_norm.reset();
    }
    if ((parts & 8) == 0) {
      some.residual.reset();
    }
    EXPECT_LT(
        error_of([&] { return quantized_linear(x, weight, some); }),
        kQuantError)
        << parts;
  }
}

TEST_P(QuantizedLinear, GatesWhatItMultiplied) {
  for (const GateKind kind : {GateKind::kSwiglu, GateKind::kGegluTanh}) {
    for (const int n : {5, 64, 200}) {
      const PackedWeight gate = packed(WeightFormat::kQ4_K, n, 256);
      const PackedWeight up = packed(WeightFormat::kQ6_K, n, 256);
      for (const int t : {1, 3, 20}) {
        const mx::array x = random_array({t, 256}, 3);
        const auto compute = [&] {
          return quantized_gated(x, gate, up, kind, norm_weight(256));
        };
        EXPECT_LT(error_of(compute), kQuantError) << n << " " << t;
      }
    }
  }
}

TEST_P(QuantizedLinear, ATailIsItsPartsOneAfterAnother) {
  for (const bool norms : {false, true}) {
    const auto maybe = [&](int size) {
      return norms ? std::optional(norm_weight(size)) : std::nullopt;
    };
    const LayerTail tail = {
        .o_proj = packed(WeightFormat::kQ4_1, 64, 96),
        .o_bias = random_array({64}, 1),
        .attention_output_norm = maybe(64),
        .mlp_norm = maybe(64),
        .gate_proj = packed(WeightFormat::kQ5_0, 160, 64),
        .up_proj = packed(WeightFormat::kQ4_0, 160, 64),
        .gate = GateKind::kSwiglu,
        .down_proj = packed(WeightFormat::kQ8_0, 64, 160),
        .down_bias = std::nullopt,
        .mlp_output_norm = maybe(64)};
    for (const int t : {1, 5, 40}) {
      const mx::array attended = random_array({t, 96}, 3);
      const mx::array residual = random_array({t, 64}, 4);
      const mx::array hidden = quantized_linear(
          attended,
          tail.o_proj,
          {.bias = tail.o_bias,
           .output_norm = tail.attention_output_norm,
           .residual = residual});
      const mx::array expected = quantized_linear(
          quantized_gated(
              hidden,
              tail.gate_proj,
              tail.up_proj,
              tail.gate,
              tail.mlp_norm),
          tail.down_proj,
          {.output_norm = tail.mlp_output_norm, .residual = hidden});
      const auto compute = [&] {
        return quantized_tail(attended, residual, tail);
      };
      EXPECT_TRUE(same_bits(compute(), expected)) << t;
      EXPECT_LT(error_of(compute), kQuantError) << t;
    }
  }
}

TEST_P(QuantizedLinear, ProjectsNormsAndRotatesHeads) {
  for (const bool everything : {false, true}) {
    QKVProjections p = {
        .q_proj = packed(WeightFormat::kQ5_0, 4 * 24, 96),
        .k_proj = packed(WeightFormat::kQ5_0, 2 * 24, 96),
        .v_proj = packed(WeightFormat::kQ8_0, 2 * 24, 96),
        .biases = {},
        .q_norm = std::nullopt,
        .k_norm = std::nullopt,
        .head_dim = 24,
        .rope_pairs = RopePairs::kHalves};
    std::optional<NormWeight> norm;
    if (everything) {
      p.biases = {
          random_array({96}, 1),
          random_array({48}, 2),
          random_array({48}, 3)};
      p.q_norm = norm_weight(24);
      p.k_norm = norm_weight(24);
      p.rope_pairs = RopePairs::kTraditional;
      norm = norm_weight(96);
    }
    for (const int t : {1, 3, 18}) {
      const mx::array x = random_array({t, 96}, 3);
      const mx::array table = rope_table(
          mx::arange(5, 5 + t, mx::int32),
          mx::abs(random_array({10}, 9)),
          1.0F);
      for (size_t i = 0; i < 3; ++i) {
        const auto compute = [&] {
          return quantized_qkv(x, p, table, norm)[i];
        };
        EXPECT_LT(error_of(compute), kQuantError) << i << " of " << t;
      }
    }
  }
}

TEST_P(QuantizedLinear, GivesATokenTheSameBitsInAnyBatchAndOnAnyThreads) {
  const mx::array x = random_array({300, 256}, 5);
  const PackedWeight gate = packed(WeightFormat::kQ4_1, 70, 256);
  const PackedWeight up = packed(WeightFormat::kQ6_K, 70, 256);
  const PackedWeight down = packed(WeightFormat::kQ8_0, 90, 256);
  const auto compute = [&](const mx::array& part) {
    return mx::concatenate(
        {quantized_linear(part, down, {.norm = norm_weight(256)}),
         quantized_gated(part, gate, up, GateKind::kSwiglu, {})},
        1);
  };
  const mx::array whole = compute(x);
  for (const int threads : {1, 2, 3}) {
    configure({.threads = threads, .target = GetParam()});
    for (const int rows : {1, 2, 7, 8, 64, 299}) {
      for (const int first : {0, 1}) {
        const mx::array part = mx::slice(x, {first, 0}, {first + rows, 256});
        EXPECT_TRUE(same_bits(
            compute(part),
            mx::slice(whole, {first, 0}, {first + rows, 160})))
            << rows << " rows from " << first;
      }
    }
  }
}

TEST_P(QuantizedLinear, SpoilsOnlyTheTokenThatIsNotFinite) {
  const float infinity = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const WeightFormat format :
       {WeightFormat::kQ4_1, WeightFormat::kQ8_0, WeightFormat::kQ6_K}) {
    const PackedWeight weight = packed(format, 4, 256);
    std::vector<float> x(3 * 256, 1.0F);
    x[5] = nan;
    x[256 + 100] = -infinity;
    const auto got = testing::values(
        quantized_linear(mx::array(x.begin(), {3, 256}), weight));
    for (int i = 0; i < 8; ++i) {
      EXPECT_TRUE(std::isnan(got[static_cast<size_t>(i)])) << i;
    }
    for (int i = 8; i < 12; ++i) {
      EXPECT_TRUE(std::isfinite(got[static_cast<size_t>(i)])) << i;
    }
  }
}

TEST_P(QuantizedLinear, TakesNoTokensAndZeros) {
  const PackedWeight weight = packed(WeightFormat::kQ4_0, 20, 64);
  mx::array none = quantized_linear(mx::zeros({0, 64}), weight);
  none.eval();
  EXPECT_EQ(none.shape(), (mx::Shape{0, 20}));
  const auto zeros =
      testing::values(quantized_linear(mx::zeros({2, 64}), weight));
  EXPECT_EQ(zeros, std::vector<float>(40, 0.0F));
}

TEST_P(QuantizedLinear, KeepsTheLargestProductsWithinItsIntegers) {
  // Every quant at its extreme: what saturates would show.
  const int columns = 256;
  for (const int bits : {2, 3, 4, 5, 6, 8}) {
    Weight weight = affine_weight(16, columns, bits, 32, mx::float32);
    weight.data = mx::full(weight.data.shape(), 0xFFFFFFFFU, mx::uint32);
    const PackedWeight largest = pack(weight, slabs_);
    for (const float value : {1.0F, -1.0F}) {
      const mx::array x = mx::full({3, columns}, value);
      EXPECT_LT(
          error_of([&] { return quantized_linear(x, largest); }),
          kSumError)
          << bits << " bits";
    }
  }
}

SHEAVE_TEST_EACH_TARGET(QuantizedLinear);

TEST(QuantizedLinearTargets, GiveTheSameBits) {
  SlabAllocator slabs;
  const auto targets = available_targets();
  for (const WeightFormat format : testing::kBlockFormats) {
    const PackedWeight weight = pack(random_weight(format, 33, 512), slabs);
    const mx::array x = random_array({9, 512}, 5);
    std::vector<mx::array> results;
    for (const char* target : {"avx2", "avx512_vnni"}) {
      if (std::find(targets.begin(), targets.end(), target) != targets.end()) {
        configure({.threads = 2, .target = target});
        results.push_back(quantized_linear(x, weight));
        results.back().eval();
      }
    }
    configure({});
    for (size_t i = 1; i < results.size(); ++i) {
      EXPECT_TRUE(same_bits(results[0], results[i]))
          << weight_format_name(format);
    }
  }
}

TEST(QuantizedLinearCheck, RefusesWhatDoesNotFit) {
  SlabAllocator slabs;
  const PackedWeight weight =
      pack(random_weight(WeightFormat::kQ4_1, 4, 64), slabs);
  const PackedWeight other =
      pack(random_weight(WeightFormat::kQ4_1, 5, 64), slabs);
  const mx::array x = mx::zeros({2, 64});
  EXPECT_THROW(
      quantized_linear(mx::zeros({2, 63}), weight),
      std::invalid_argument);
  EXPECT_THROW(
      quantized_linear(x, weight, {.norm = norm_weight(63)}),
      std::invalid_argument);
  EXPECT_THROW(
      quantized_linear(x, weight, {.bias = mx::zeros({5})}),
      std::invalid_argument);
  EXPECT_THROW(
      quantized_linear(x, weight, {.residual = mx::zeros({3, 4})}),
      std::invalid_argument);
  EXPECT_THROW(
      quantized_gated(x, weight, other, GateKind::kSwiglu, {}),
      std::invalid_argument);
  const QKVProjections odd = {
      .q_proj = weight,
      .k_proj = weight,
      .v_proj = weight,
      .biases = {},
      .q_norm = std::nullopt,
      .k_norm = std::nullopt,
      .head_dim = 3,
      .rope_pairs = RopePairs::kHalves};
  EXPECT_THROW(
      quantized_qkv(x, odd, mx::zeros({2, 2}), {}),
      std::invalid_argument);
}

} // namespace
} // namespace sheave::kernels
