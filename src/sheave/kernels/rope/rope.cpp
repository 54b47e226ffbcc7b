#include "sheave/kernels/rope/rope.h"

#include <cmath>
#include <cstring>
#include <sstream>
#include <stdexcept>
#include <vector>

#include "sheave/kernels/cpu_primitive.h"
#include "sheave/kernels/runtime.h"

namespace sheave::kernels {
namespace {

/// cos and sin of one token's angles, then its heads rotated. Plain loops: the
/// work is a few per mille of a step.
struct RopeToken {
  const float* inv_freq;
  int pairs;
  int heads;
  int head_dim;
  RopeOptions options;

  void rotate(const float* x, int32_t position, float* cosines, float* out)
      const {
    float* sines = cosines + pairs;
    for (int i = 0; i < pairs; ++i) {
      const float angle = static_cast<float>(position) * inv_freq[i];
      cosines[i] = std::cos(angle) * options.attention_factor;
      sines[i] = std::sin(angle) * options.attention_factor;
    }
    // Pair i is made of dims first(i) and first(i) + distance.
    const int step = options.traditional ? 2 : 1;
    const int distance = options.traditional ? 1 : pairs;
    for (int head = 0; head < heads; ++head) {
      for (int i = 0; i < pairs; ++i) {
        const float a = x[i * step];
        const float b = x[i * step + distance];
        out[i * step] = a * cosines[i] - b * sines[i];
        out[i * step + distance] = b * cosines[i] + a * sines[i];
      }
      const int rotated = 2 * pairs;
      std::memcpy(
          out + rotated,
          x + rotated,
          static_cast<size_t>(head_dim - rotated) * sizeof(float));
      x += head_dim;
      out += head_dim;
    }
  }
};

/// Inputs: x, positions, inv_freq.
class RopePrimitive : public CpuPrimitive {
 public:
  explicit RopePrimitive(const RopeOptions& options) : options_(options) {}

  DEFINE_NAME(SheaveRope)

 protected:
  ScratchSize scratch_size(
      const std::vector<mx::array>& inputs) const override {
    return {.shared = 0, .per_worker = 2 * inputs[2].size()};
  }

  void run(
      const std::vector<mx::array>& inputs,
      float* output,
      const Scratch& scratch) const override {
    const mx::array& x = inputs[0];
    const RopeToken token = {
        .inv_freq = inputs[2].data<float>(),
        .pairs = inputs[2].shape(0),
        .heads = x.shape(1),
        .head_dim = x.shape(2),
        .options = options_};
    const auto stride =
        static_cast<size_t>(x.shape(1)) * static_cast<size_t>(x.shape(2));
    thread_pool().run(x.shape(0), [&](int index, int worker) {
      const size_t at = static_cast<size_t>(index) * stride;
      token.rotate(
          x.data<float>() + at,
          inputs[1].data<int32_t>()[index],
          scratch.worker(worker),
          output + at);
    });
  }

 private:
  RopeOptions options_;
};

mx::array rope_reference(
    const mx::array& x,
    const mx::array& positions,
    const mx::array& inv_freq,
    const RopeOptions& options) {
  const int tokens = x.shape(0);
  const int heads = x.shape(1);
  const int pairs = inv_freq.shape(0);
  const mx::array angles = mx::expand_dims(
      mx::multiply(
          mx::expand_dims(mx::astype(positions, mx::float32), 1),
          inv_freq),
      1); // [T, 1, P]
  const mx::array factor(options.attention_factor);
  const mx::array cosines = mx::cos(angles) * factor;
  const mx::array sines = mx::sin(angles) * factor;
  const mx::array rotated = mx::slice(
      mx::astype(x, mx::float32),
      {0, 0, 0},
      {tokens, heads, 2 * pairs});
  const int axis = options.traditional ? 3 : 2; // of the two halves
  const mx::array split = mx::reshape(
      rotated,
      options.traditional ? mx::Shape{tokens, heads, pairs, 2}
                          : mx::Shape{tokens, heads, 2, pairs});
  const mx::array a = mx::take(split, 0, axis);
  const mx::array b = mx::take(split, 1, axis);
  const mx::array turned = mx::reshape(
      mx::stack({a * cosines - b * sines, b * cosines + a * sines}, axis),
      {tokens, heads, 2 * pairs});
  return mx::concatenate(
      {turned,
       mx::slice(
           mx::astype(x, mx::float32),
           {0, 0, 2 * pairs},
           {tokens, heads, x.shape(2)})},
      2);
}

} // namespace

mx::array rope(
    const mx::array& x,
    const mx::array& positions,
    const mx::array& inv_freq,
    const RopeOptions& options) {
  const bool fits = x.ndim() == 3 && positions.ndim() == 1 &&
                    positions.shape(0) == x.shape(0) &&
                    positions.dtype() == mx::int32 && inv_freq.ndim() == 1 &&
                    2 * inv_freq.shape(0) <= x.shape(2);
  if (!fits) {
    std::ostringstream message;
    message << "[rope] expected x [T, H, D], positions [T] int32 and inv_freq "
            << "of at most D / 2, got " << x.shape() << ", "
            << positions.shape() << " " << positions.dtype() << " and "
            << inv_freq.shape();
    throw std::invalid_argument(message.str());
  }
  if (use_reference()) {
    return rope_reference(x, positions, inv_freq, options);
  }
  return make_output<RopePrimitive>(
      x.shape(),
      {contiguous_input(x),
       mx::contiguous(positions),
       contiguous_input(inv_freq)},
      options);
}

} // namespace sheave::kernels
