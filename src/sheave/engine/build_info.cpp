#include "sheave/engine/build_info.h"

#include <mlx/device.h>
#include <mlx/version.h>

#include "sheave/kernels/runtime.h"

namespace sheave {

BuildInfo build_info() {
  const bool gpu = mlx::core::default_device() == mlx::core::Device::gpu;
  return {
      .version = SHEAVE_VERSION,
      .mlx_version = mlx::core::version(),
      .device = gpu ? "gpu" : "cpu",
      .kernels = kernels::target_name(),
      .threads = kernels::num_threads()};
}

void configure_threads(int threads) {
  kernels::configure({.threads = threads});
}

} // namespace sheave
