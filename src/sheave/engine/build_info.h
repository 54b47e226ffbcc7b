// What this program is made of and runs on, in words.
#pragma once

#include <string>

namespace sheave {

/// version: Sheave's; device: "cpu" or "gpu"; kernels: the kernel target in
/// use, e.g. "avx512_vnni" or "reference".
struct BuildInfo {
  std::string version;
  std::string mlx_version;
  std::string device;
  std::string kernels;
  int threads = 0;
};

BuildInfo build_info();

/// Sets the number of kernel threads, 0 for the machine's default. Throws
/// std::invalid_argument for a negative or absurd number.
void configure_threads(int threads);

} // namespace sheave
