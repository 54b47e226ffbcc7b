#include "sheave/kernels/rope/rope.h"

#include <cmath>
#include <cstring>
#include <sstream>
#include <stdexcept>
#include <vector>

#include "sheave/kernels/cpu_primitive.h"
#include "sheave/kernels/rope/rotate_heads.h"
#include "sheave/kernels/runtime.h"

namespace sheave::kernels {
namespace {

/// Inputs: positions, inv_freq.
class RopeTablePrimitive : public CpuFloatPrimitive {
 public:
  explicit RopeTablePrimitive(float attention_factor)
      : attention_factor_(attention_factor) {}

  DEFINE_NAME(SheaveRopeTable)

 protected:
  void run(
      const std::vector<mx::array>& inputs,
      float* output,
      const Scratch& /*scratch*/) const override {
    const int32_t* positions = inputs[0].data<int32_t>();
    const float* inv_freq = inputs[1].data<float>();
    const int pairs = inputs[1].shape(0);
    thread_pool().run(inputs[0].shape(0), [&](int token, int) {
      float* cosines = output + static_cast<size_t>(token) * 2 * pairs;
      for (int i = 0; i < pairs; ++i) {
        const float angle = static_cast<float>(positions[token]) * inv_freq[i];
        cosines[i] = std::cos(angle) * attention_factor_;
        cosines[i + pairs] = std::sin(angle) * attention_factor_;
      }
    });
  }

 private:
  float attention_factor_;
};

/// Inputs: x, table.
class RopePrimitive : public CpuFloatPrimitive {
 public:
  explicit RopePrimitive(RopePairs pairs) : pairs_(pairs) {}

  DEFINE_NAME(SheaveRope)

 protected:
  void run(
      const std::vector<mx::array>& inputs,
      float* output,
      const Scratch& /*scratch*/) const override {
    const mx::array& x = inputs[0];
    const int width = inputs[1].shape(1);
    const size_t stride =
        static_cast<size_t>(x.shape(1)) * static_cast<size_t>(x.shape(2));
    const RopeHeads heads = {
        .heads = x.shape(1),
        .head_dim = x.shape(2),
        .num_pairs = width / 2,
        .pairs = pairs_};
    thread_pool().run(x.shape(0), [&](int token, int) {
      const auto t = static_cast<size_t>(token);
      float* out = output + t * stride;
      std::memcpy(out, x.data<float>() + t * stride, stride * sizeof(float));
      rotate_heads(heads, inputs[1].data<float>() + t * width, out);
    });
  }

 private:
  RopePairs pairs_;
};

mx::array rope_table_reference(
    const mx::array& positions,
    const mx::array& inv_freq,
    float attention_factor) {
  const mx::array angles = mx::multiply(
      mx::expand_dims(mx::astype(positions, mx::float32), 1),
      inv_freq);
  const mx::array factor(attention_factor);
  return mx::concatenate(
      {mx::cos(angles) * factor, mx::sin(angles) * factor},
      1);
}

mx::array
rope_reference(const mx::array& x, const mx::array& table, RopePairs pairs) {
  const int tokens = x.shape(0);
  const int heads = x.shape(1);
  const int half = table.shape(1) / 2;
  const mx::array cosines =
      mx::expand_dims(mx::slice(table, {0, 0}, {tokens, half}), 1);
  const mx::array sines =
      mx::expand_dims(mx::slice(table, {0, half}, {tokens, 2 * half}), 1);
  const mx::array input = mx::astype(x, mx::float32);
  const mx::array rotated =
      mx::slice(input, {0, 0, 0}, {tokens, heads, 2 * half});
  const bool traditional = pairs == RopePairs::kTraditional;
  const int axis = traditional ? 3 : 2; // of the two halves
  const mx::array split = mx::reshape(
      rotated,
      traditional ? mx::Shape{tokens, heads, half, 2}
                  : mx::Shape{tokens, heads, 2, half});
  const mx::array a = mx::take(split, 0, axis);
  const mx::array b = mx::take(split, 1, axis);
  const mx::array turned = mx::reshape(
      mx::stack({a * cosines - b * sines, b * cosines + a * sines}, axis),
      {tokens, heads, 2 * half});
  return mx::concatenate(
      {turned, mx::slice(input, {0, 0, 2 * half}, {tokens, heads, x.shape(2)})},
      2);
}

} // namespace

void rotate_heads(const RopeHeads& heads, const float* table, float* x) {
  const float* cosines = table;
  const float* sines = table + heads.num_pairs;
  const bool traditional = heads.pairs == RopePairs::kTraditional;
  const int step = traditional ? 2 : 1;
  const int distance = traditional ? 1 : heads.num_pairs;
  for (int head = 0; head < heads.heads; ++head) {
    for (int i = 0; i < heads.num_pairs; ++i) {
      float& first = x[i * step];
      float& second = x[i * step + distance];
      const float a = first;
      const float b = second;
      first = a * cosines[i] - b * sines[i];
      second = b * cosines[i] + a * sines[i];
    }
    x += heads.head_dim;
  }
}

mx::array rope_table(
    const mx::array& positions,
    const mx::array& inv_freq,
    float attention_factor) {
  if (positions.ndim() != 1 || positions.dtype() != mx::int32 ||
      inv_freq.ndim() != 1) {
    std::ostringstream message;
    message << "[rope] expected positions [T] int32 and inv_freq [P], got "
            << positions.shape() << " " << positions.dtype() << " and "
            << inv_freq.shape();
    throw std::invalid_argument(message.str());
  }
  if (use_reference()) {
    return rope_table_reference(positions, inv_freq, attention_factor);
  }
  return make_output<RopeTablePrimitive>(
      {positions.shape(0), 2 * inv_freq.shape(0)},
      {mx::contiguous(positions), contiguous_input(inv_freq)},
      attention_factor);
}

mx::array rope(const mx::array& x, const mx::array& table, RopePairs pairs) {
  const bool fits = x.ndim() == 3 && table.ndim() == 2 &&
                    table.shape(0) == x.shape(0) && table.shape(1) % 2 == 0 &&
                    table.shape(1) <= x.shape(2);
  if (!fits) {
    std::ostringstream message;
    message << "[rope] expected x [T, H, D] and a table [T, 2 P] of at most D "
            << "columns, got " << x.shape() << " and " << table.shape();
    throw std::invalid_argument(message.str());
  }
  if (use_reference()) {
    return rope_reference(x, table, pairs);
  }
  return make_output<RopePrimitive>(
      x.shape(),
      {contiguous_input(x), contiguous_input(table)},
      pairs);
}

} // namespace sheave::kernels
