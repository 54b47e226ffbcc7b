#include "sheave/kernels/cpu_primitive.h"

#include <mlx/allocator.h>
#include <mlx/backend/cpu/encoder.h>

#include <cstdlib>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>

#include "sheave/base/check.h"
#include "sheave/kernels/profile.h"
#include "sheave/kernels/runtime.h"

namespace sheave::kernels {
namespace {

/// Scratch memory, shared by the primitives that a thread hands to MLX: they
/// run one after another. Kept from one to the next, since fresh memory costs a
/// page fault per page; where more is needed, those handed over before keep the
/// old piece.
class ScratchMemory {
 public:
  /// Aligned to 64 bytes. Throws std::bad_alloc.
  std::shared_ptr<float> reserve(size_t floats) {
    if (floats > size_) {
      auto* fresh =
          static_cast<float*>(std::aligned_alloc(64, floats * sizeof(float)));
      if (fresh == nullptr) {
        throw std::bad_alloc();
      }
      memory_.reset(fresh, std::free);
      size_ = floats;
    }
    return memory_;
  }

 private:
  std::shared_ptr<float> memory_;
  size_t size_ = 0;
};

/// A primitive's scratch memory, and what keeps it.
struct OwnedScratch {
  std::shared_ptr<float> memory;
  Scratch scratch;
};

OwnedScratch reserve_scratch(const ScratchSize& size) {
  thread_local ScratchMemory memory;
  const size_t shared = ScratchPieces::floats<float>(size.shared);
  const size_t stride = ScratchPieces::floats<float>(size.per_worker);
  auto all =
      memory.reserve(shared + static_cast<size_t>(num_threads()) * stride);
  float* start = all.get();
  return {
      .memory = std::move(all),
      .scratch = {
          .shared = start,
          .workers = start + shared,
          .worker_stride = stride}};
}

std::vector<mx::array> weak_copies(const std::vector<mx::array>& arrays) {
  std::vector<mx::array> copies;
  copies.reserve(arrays.size());
  for (const mx::array& array : arrays) {
    copies.push_back(mx::array::unsafe_weak_copy(array));
  }
  return copies;
}

} // namespace

mx::array contiguous_stored(const mx::array& x) {
  const bool ours = x.has_primitive() && dynamic_cast<const CpuPrimitive*>(
                                             &x.primitive()) != nullptr;
  const bool known = ours || (x.is_available() && x.flags().row_contiguous);
  return known ? x : mx::contiguous(x);
}

mx::array contiguous_input(const mx::array& x) {
  return contiguous_stored(mx::astype(x, mx::float32));
}

CpuPrimitive::CpuPrimitive() : Primitive(mx::default_stream(mx::Device::cpu)) {}

void CpuPrimitive::allocate(
    const std::vector<mx::array>& /*inputs*/,
    std::vector<mx::array>& outputs) const {
  for (mx::array& output : outputs) {
    output.set_data(mx::allocator::malloc(output.nbytes()));
  }
}

void CpuPrimitive::eval_cpu(
    const std::vector<mx::array>& inputs,
    std::vector<mx::array>& outputs) {
  for (const mx::array& input : inputs) {
    SHEAVE_CHECK(input.flags().row_contiguous, "an input isn't contiguous");
  }
  allocate(inputs, outputs);
  auto& encoder = mx::cpu::get_command_encoder(stream());
  for (const mx::array& input : inputs) {
    encoder.set_input_array(input);
  }
  for (mx::array& output : outputs) {
    encoder.set_output_array(output);
  }
  // Here, where it may throw.
  OwnedScratch owned = reserve_scratch(scratch_size(inputs));
  // MLX may let go of the primitive before the task has run.
  encoder.dispatch([self = shared_from_this(),
                    arrays = weak_copies(inputs),
                    results = weak_copies(outputs),
                    owned = std::move(owned)]() mutable {
    const KernelTimer timer(self->name());
    self->run_all(arrays, results, owned.scratch);
  });
}

void CpuPrimitive::eval_gpu(
    const std::vector<mx::array>& /*inputs*/,
    std::vector<mx::array>& /*outputs*/) {
  throw std::runtime_error(
      std::string("[") + name() + "] has no GPU implementation");
}

} // namespace sheave::kernels
