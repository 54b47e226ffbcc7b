#include "sheave/kernels/cpu_primitive.h"

#include <mlx/allocator.h>
#include <mlx/backend/cpu/encoder.h>

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>

#include "sheave/base/check.h"
#include "sheave/kernels/profile.h"
#include "sheave/kernels/runtime.h"

namespace sheave::kernels {
namespace {

constexpr size_t kLineBytes = 64;
constexpr size_t kLineFloats = kLineBytes / sizeof(float);

size_t whole_lines(size_t floats) {
  return (floats + kLineFloats - 1) / kLineFloats * kLineFloats;
}

/// The scratch memory of the thread that evaluates: kept from one primitive to
/// the next, since fresh memory costs a page fault per page.
class ScratchMemory {
 public:
  float* reserve(size_t floats) {
    if (floats > size_) {
      size_ = floats;
      memory_.reset(static_cast<float*>(
          std::aligned_alloc(kLineBytes, size_ * sizeof(float))));
      SHEAVE_CHECK(memory_ != nullptr, "no memory for scratch");
    }
    return memory_.get();
  }

 private:
  struct Free {
    void operator()(float* memory) const {
      std::free(memory); // NOLINT(cppcoreguidelines-no-malloc): aligned_alloc's
    }
  };

  std::unique_ptr<float, Free> memory_;
  size_t size_ = 0;
};

Scratch scratch_of(const ScratchSize& size) {
  thread_local ScratchMemory memory;
  const size_t shared = whole_lines(size.shared);
  const size_t stride = whole_lines(size.per_worker);
  float* all =
      memory.reserve(shared + static_cast<size_t>(num_threads()) * stride);
  return {.shared = all, .workers = all + shared, .worker_stride = stride};
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
  // MLX may let go of the primitive before the task has run.
  encoder.dispatch([self = shared_from_this(),
                    arrays = weak_copies(inputs),
                    results = weak_copies(outputs)]() mutable {
    const KernelTimer timer(self->name());
    self->run_all(arrays, results, scratch_of(self->scratch_size(arrays)));
  });
}

void CpuPrimitive::eval_gpu(
    const std::vector<mx::array>& /*inputs*/,
    std::vector<mx::array>& /*outputs*/) {
  throw std::runtime_error(
      std::string("[") + name() + "] has no GPU implementation");
}

} // namespace sheave::kernels
