// CpuPrimitive: what our MLX primitives have in common. Internal to the
// kernels room.
#pragma once

#include <mlx/array.h>
#include <mlx/ops.h>
#include <mlx/primitives.h>

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

namespace sheave::kernels {

namespace mx = mlx::core;

/// Scratch memory that a primitive asks for, in floats.
struct ScratchSize {
  size_t shared = 0;     // once
  size_t per_worker = 0; // for each thread of the pool
};

/// Scratch memory as it was allocated; every piece is aligned to 64 bytes.
struct Scratch {
  float* shared = nullptr;
  float* workers = nullptr;
  size_t worker_stride = 0;

  float* worker(int index) const {
    return workers + static_cast<size_t>(index) * worker_stride;
  }
};

/// A primitive with one float32 output, evaluated on the CPU only. Inputs must
/// be row-contiguous once evaluated; see contiguous_input().
class CpuPrimitive : public mx::UnaryPrimitive,
                     public std::enable_shared_from_this<CpuPrimitive> {
 public:
  CpuPrimitive();

  void eval_cpu(const std::vector<mx::array>& inputs, mx::array& output)
      override;
  void eval_gpu(const std::vector<mx::array>& inputs, mx::array& output)
      override;

 protected:
  /// What run() needs for these inputs.
  virtual ScratchSize scratch_size(
      const std::vector<mx::array>& /*inputs*/) const {
    return {};
  }

  /// Computes the output, whose memory is allocated. Must not throw.
  virtual void run(
      const std::vector<mx::array>& inputs,
      float* output,
      const Scratch& scratch) const = 0;
};

/// float32 and row-contiguous when evaluated; no copy where it already is.
inline mx::array contiguous_input(const mx::array& x) {
  return mx::contiguous(mx::astype(x, mx::float32));
}

/// The output array of a primitive made of `arguments`.
template <typename P, typename... Arguments>
mx::array make_output(
    mx::Shape shape,
    std::vector<mx::array> inputs,
    Arguments&&... arguments) {
  return {
      std::move(shape),
      mx::float32,
      std::make_shared<P>(std::forward<Arguments>(arguments)...),
      std::move(inputs)};
}

} // namespace sheave::kernels
