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

/// Pieces of one scratch allocation, each aligned to 64 bytes.
class ScratchPieces {
 public:
  explicit ScratchPieces(float* memory) : at_(memory) {}

  template <typename T>
  T* take(size_t count) {
    T* piece = reinterpret_cast<T*>(at_);
    at_ += floats<T>(count);
    return piece;
  }

  /// What take<T>(count) uses up.
  template <typename T>
  static size_t floats(size_t count) {
    return (count * sizeof(T) + 63) / 64 * 16;
  }

 private:
  float* at_;
};

/// A primitive evaluated on the CPU only. Inputs must be row-contiguous once
/// evaluated; see contiguous_input().
class CpuPrimitive : public mx::Primitive,
                     public std::enable_shared_from_this<CpuPrimitive> {
 public:
  CpuPrimitive();

  void eval_cpu(
      const std::vector<mx::array>& inputs,
      std::vector<mx::array>& outputs) override;
  void eval_gpu(
      const std::vector<mx::array>& inputs,
      std::vector<mx::array>& outputs) override;

 protected:
  /// Gives the outputs their memory: fresh, unless overridden.
  virtual void allocate(
      const std::vector<mx::array>& inputs,
      std::vector<mx::array>& outputs) const;

  /// What run_all() needs for these inputs.
  virtual ScratchSize scratch_size(
      const std::vector<mx::array>& /*inputs*/) const {
    return {};
  }

  /// Computes the outputs, whose memory is allocated. Must not throw.
  virtual void run_all(
      const std::vector<mx::array>& inputs,
      std::vector<mx::array>& outputs,
      const Scratch& scratch) const = 0;
};

/// A CpuPrimitive with one float32 output.
class CpuFloatPrimitive : public CpuPrimitive {
 protected:
  /// As run_all().
  virtual void run(
      const std::vector<mx::array>& inputs,
      float* output,
      const Scratch& scratch) const = 0;

 private:
  void run_all(
      const std::vector<mx::array>& inputs,
      std::vector<mx::array>& outputs,
      const Scratch& scratch) const final {
    run(inputs, outputs[0].data<float>(), scratch);
  }
};

/// float32 and row-contiguous when evaluated; no operation is added where that
/// is known already.
mx::array contiguous_input(const mx::array& x);

/// Row-contiguous when evaluated, whatever its dtype; likewise.
mx::array contiguous_stored(const mx::array& x);

/// The output array of a CpuFloatPrimitive made of `arguments`.
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
