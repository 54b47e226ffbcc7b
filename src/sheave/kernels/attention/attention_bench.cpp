// Speed of attention: prefill in GFLOP/s (4 * D per query head and visible
// key), decode in bytes of planes read per second.
#include <benchmark/benchmark.h>
#include <mlx/ops.h>
#include <mlx/random.h>
#include <mlx/transforms.h>

#include <cstddef>
#include <vector>

#include "sheave/kernels/attention/attention.h"
#include "sheave/kernels/runtime.h"

namespace sheave::kernels {
namespace {

struct Shape {
  int query_heads;
  int kv_heads;
  int head_dim;
  int window;
};
constexpr Shape kSmolLM2 = {9, 3, 64, 0};
constexpr Shape kGemma3 = {4, 1, 256, 512};

/// Planes of `columns` random floats as float16 (bits 0), or quantized.
KVPlanes make_planes(const Shape& shape, int columns, int bits) {
  const mx::Shape dims = {1, shape.kv_heads, columns, shape.head_dim};
  const mx::array keys = mx::astype(mx::random::normal(dims), mx::float16);
  const mx::array values = mx::astype(mx::random::normal(dims), mx::float16);
  if (bits == 0) {
    return {.keys = keys, .values = values};
  }
  const auto k = mx::quantize(keys, 64, bits);
  const auto v = mx::quantize(values, 64, bits);
  return {
      .keys = k[0],
      .values = v[0],
      .key_scales = k[1],
      .key_biases = k[2],
      .value_scales = v[1],
      .value_biases = v[2],
      .bits = bits,
      .group_size = 64};
}

size_t evaluated_bytes(const KVPlanes& planes) {
  size_t bytes = 0;
  const auto add = [&](mx::array x) {
    x.eval();
    bytes += x.nbytes();
  };
  add(planes.keys);
  add(planes.values);
  if (planes.bits != 0) {
    add(*planes.key_scales);
    add(*planes.key_biases);
    add(*planes.value_scales);
    add(*planes.value_biases);
  }
  return bytes;
}

/// `tokens` queries at the end of `columns` positions, until time is up: once
/// for each of `layers`, in one evaluation, as a model does.
void attend(
    benchmark::State& state,
    const Shape& shape,
    const std::vector<KVPlanes>& layers,
    int columns,
    int tokens) {
  mx::array queries =
      mx::random::normal({tokens, shape.query_heads, shape.head_dim});
  queries.eval();
  for (auto _ : state) {
    std::vector<mx::array> outputs;
    for (const KVPlanes& planes : layers) {
      const KVView view = {
          .planes = {planes},
          .rows =
              {{.num_tokens = tokens,
                .first_position = columns - tokens,
                .ranges = {{{0, columns}, {columns, columns}}}}},
          .window = shape.window};
      outputs.push_back(attention(queries, view, {.scale = 0.125F}));
    }
    mx::eval(outputs);
  }
}

void prefill(benchmark::State& state, const Shape& shape) {
  configure({.threads = static_cast<int>(state.range(0)), .target = ""});
  constexpr int kTokens = 512;
  const KVPlanes planes = make_planes(shape, kTokens, 0);
  evaluated_bytes(planes);
  attend(state, shape, {planes}, kTokens, kTokens);
  const double pairs = 0.5 * kTokens * (kTokens + 1) * shape.query_heads;
  state.counters["flops"] = benchmark::Counter(
      4.0 * shape.head_dim * pairs,
      benchmark::Counter::kIsIterationInvariantRate);
}

void decode(benchmark::State& state, Shape shape) {
  configure({.threads = static_cast<int>(state.range(0)), .target = ""});
  constexpr int kLayers = 8;
  const auto columns = static_cast<int>(state.range(1));
  std::vector<KVPlanes> layers;
  size_t bytes = 0;
  for (int i = 0; i < kLayers; ++i) {
    layers.push_back(
        make_planes(shape, columns, static_cast<int>(state.range(2))));
    bytes += evaluated_bytes(layers.back());
  }
  shape.window = 0;
  attend(state, shape, layers, columns, 1);
  state.counters["bytes"] = benchmark::Counter(
      static_cast<double>(bytes),
      benchmark::Counter::kIsIterationInvariantRate);
}

BENCHMARK_CAPTURE(prefill, smollm2, kSmolLM2)
    ->ArgName("threads")
    ->Arg(1)
    ->Arg(2)
    ->MeasureProcessCPUTime()
    ->UseRealTime();
BENCHMARK_CAPTURE(prefill, gemma3, kGemma3)
    ->ArgName("threads")
    ->Arg(1)
    ->Arg(2)
    ->MeasureProcessCPUTime()
    ->UseRealTime();
BENCHMARK_CAPTURE(decode, smollm2, kSmolLM2)
    ->ArgNames({"threads", "context", "bits"})
    ->ArgsProduct({{1, 2}, {512, 4096}, {0, 8, 4}})
    ->MeasureProcessCPUTime()
    ->UseRealTime();
BENCHMARK_CAPTURE(decode, gemma3, kGemma3)
    ->ArgNames({"threads", "context", "bits"})
    ->ArgsProduct({{1, 2}, {512, 4096}, {0, 8, 4}})
    ->MeasureProcessCPUTime()
    ->UseRealTime();

} // namespace
} // namespace sheave::kernels
