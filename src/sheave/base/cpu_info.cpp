#include "sheave/base/cpu_info.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <set>
#include <string>
#include <thread>

#ifdef __linux__
#include <sched.h>
#endif

namespace sheave {
namespace {

#ifdef __linux__

/// "0-1" or "0,32": the name of a core, shared by its hyperthreads.
std::string core_name(int cpu) {
  std::ifstream file(
      "/sys/devices/system/cpu/cpu" + std::to_string(cpu) +
      "/topology/thread_siblings_list");
  std::string name;
  return file >> name ? name : "cpu" + std::to_string(cpu);
}

int allowed_cores() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  if (sched_getaffinity(0, sizeof(mask), &mask) != 0) {
    return static_cast<int>(std::thread::hardware_concurrency());
  }
  std::set<std::string> cores;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &mask)) {
      cores.insert(core_name(cpu));
    }
  }
  return static_cast<int>(cores.size());
}

/// Processors that the cgroup's quota amounts to, or a large number.
int quota_cores() {
  constexpr int kNoLimit = 1 << 20;
  std::ifstream file("/sys/fs/cgroup/cpu.max");
  std::string quota;
  double period = 0;
  if (!(file >> quota >> period) || quota == "max" || period <= 0) {
    return kNoLimit;
  }
  try {
    return static_cast<int>(std::ceil(std::stod(quota) / period));
  } catch (const std::exception&) {
    return kNoLimit;
  }
}

#endif

} // namespace

CpuFeatures cpu_features() {
  CpuFeatures features;
#if defined(__x86_64__)
  __builtin_cpu_init();
  features.avx2 = __builtin_cpu_supports("avx2") &&
                  __builtin_cpu_supports("fma") &&
                  __builtin_cpu_supports("f16c");
  features.avx512 = features.avx2 && __builtin_cpu_supports("avx512f") &&
                    __builtin_cpu_supports("avx512bw") &&
                    __builtin_cpu_supports("avx512dq") &&
                    __builtin_cpu_supports("avx512vl") &&
                    __builtin_cpu_supports("avx512vnni");
#endif
  return features;
}

int usable_cores() {
#ifdef __linux__
  return std::max(1, std::min(allowed_cores(), quota_cores()));
#else
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
#endif
}

} // namespace sheave
