#include "sheave/kernels/cpu_primitive.h"

#include <mlx/allocator.h>
#include <mlx/backend/cpu/encoder.h>

#include <cstdint>
#include <stdexcept>
#include <string>

#include "sheave/kernels/profile.h"
#include "sheave/base/check.h"
#include "sheave/kernels/runtime.h"

namespace sheave::kernels {
namespace {

constexpr size_t kLineFloats = 16; // 64 bytes

size_t whole_lines(size_t floats) {
  return (floats + kLineFloats - 1) / kLineFloats * kLineFloats;
}

/// Memory for the scratch, one line more than needed so that it can be
/// aligned: MLX's own buffers start anywhere.
mx::array allocate_scratch(size_t floats) {
  const size_t count = floats + kLineFloats;
  return mx::array(
      mx::allocator::malloc(count * sizeof(float)),
      {static_cast<int>(count)},
      mx::float32);
}

float* align_to_line(float* p) {
  const auto address = reinterpret_cast<uintptr_t>(p);
  return p + (64 - address % 64) % 64 / sizeof(float);
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

mx::array contiguous_stored(mx::array x) {
  const bool ours =
      x.has_primitive() &&
      dynamic_cast<const CpuPrimitive*>(&x.primitive()) != nullptr;
  const bool known = ours || (x.is_available() && x.flags().row_contiguous);
  return known ? x : mx::contiguous(x);
}

mx::array contiguous_input(const mx::array& x) {
  return contiguous_stored(mx::astype(x, mx::float32));
}

CpuPrimitive::CpuPrimitive()
    : Primitive(mx::default_stream(mx::Device::cpu)) {}

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
  const ScratchSize size = scratch_size(inputs);
  const size_t shared = whole_lines(size.shared);
  const size_t stride = whole_lines(size.per_worker);
  const auto workers = static_cast<size_t>(num_threads());
  mx::array scratch = allocate_scratch(shared + workers * stride);

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
                    results = weak_copies(outputs),
                    scratch,
                    shared,
                    stride]() mutable {
    const KernelTimer timer(self->name());
    float* memory = align_to_line(scratch.data<float>());
    self->run_all(
        arrays,
        results,
        {.shared = memory,
         .workers = memory + shared,
         .worker_stride = stride});
  });
}

void CpuPrimitive::eval_gpu(
    const std::vector<mx::array>& /*inputs*/,
    std::vector<mx::array>& /*outputs*/) {
  throw std::runtime_error(
      std::string("[") + name() + "] has no GPU implementation");
}

} // namespace sheave::kernels
