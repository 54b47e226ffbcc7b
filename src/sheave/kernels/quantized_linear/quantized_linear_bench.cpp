// Speed of the quantized products at the shapes of SmolLM2 135M and Gemma 3
// 270M. bytes: of weights; operations: two per weight and token.

#include <benchmark/benchmark.h>
#include <mlx/transforms.h>

#include "sheave/kernels/quantized_linear/quantized_linear.h"
#include "sheave/kernels/runtime.h"
#include "sheave/kernels/weight_test_support.h"

namespace sheave::kernels {
namespace {

/// Arguments: tokens, threads, columns, rows. Several copies of the weight, 64
/// MB in all, so that no cache but a very large one holds them.
void quantized_product(benchmark::State& state, WeightFormat format) {
  const int tokens = static_cast<int>(state.range(0));
  const int columns = static_cast<int>(state.range(2));
  const int rows = static_cast<int>(state.range(3));
  configure({.threads = static_cast<int>(state.range(1)), .target = ""});
  SlabAllocator slabs;
  const Weight weight = testing::random_weight(format, rows, columns);
  std::vector<PackedWeight> copies;
  size_t bytes = 0;
  while (bytes < (size_t{64} << 20)) {
    copies.push_back(pack(weight, slabs));
    bytes += copies.back().data.nbytes();
  }
  const mx::array x = testing::random_array({tokens, columns}, 1);
  for (auto _ : state) {
    // A chain, as in a model: a result's memory is used again.
    mx::array result = x;
    for (const PackedWeight& copy : copies) {
      result = mx::depends({x}, {quantized_linear(result, copy)})[0];
    }
    result.eval();
  }
  const auto products = static_cast<int64_t>(copies.size());
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(bytes));
  state.counters["op/s"] = benchmark::Counter(
      2.0 * tokens * columns * rows * static_cast<double>(products),
      benchmark::Counter::kIsIterationInvariantRate);
  configure({});
}

void shapes(benchmark::internal::Benchmark* bench) {
  for (const int tokens : {1, 4, 8, 512}) {
    for (const int threads : {1, 2}) {
      bench->Args({tokens, threads, 576, 1536});
    }
  }
  bench->Args({1, 2, 640, 65536});
  bench->ArgNames({"tokens", "threads", "columns", "rows"});
  bench->UseRealTime()->Unit(benchmark::kMillisecond);
}

BENCHMARK_CAPTURE(quantized_product, Q4_0, WeightFormat::kQ4_0)->Apply(shapes);
BENCHMARK_CAPTURE(quantized_product, Q4_1, WeightFormat::kQ4_1)->Apply(shapes);
BENCHMARK_CAPTURE(quantized_product, Q5_0, WeightFormat::kQ5_0)->Apply(shapes);
BENCHMARK_CAPTURE(quantized_product, Q8_0, WeightFormat::kQ8_0)->Apply(shapes);

} // namespace
} // namespace sheave::kernels
