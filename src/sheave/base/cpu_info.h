// What the processor can do, and how much of it this process may use.
#pragma once

namespace sheave {

/// Instruction sets that kernels choose by; all false on other processors.
struct CpuFeatures {
  bool avx2 = false;   // AVX2, FMA and F16C
  bool avx512 = false; // AVX-512 F, BW, DQ, VL and VNNI
};

CpuFeatures cpu_features();

/// Physical cores that this process may run on: the affinity mask, hyper-
/// threads counted once, and at most the cgroup's processor quota. At least 1.
int usable_cores();

} // namespace sheave
