#include "sheave/base/memory.h"

#include <sys/resource.h>

#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace sheave {

uint64_t peak_rss_bytes() {
  rusage usage{};
  if (getrusage(RUSAGE_SELF, &usage) != 0) {
    return 0;
  }
  const auto peak = static_cast<uint64_t>(usage.ru_maxrss);
#ifdef __APPLE__
  return peak;
#else
  return peak * 1024; // Linux counts in KiB
#endif
}

void keep_freed_memory() {
#ifdef __GLIBC__
  constexpr int kLargestBlock = 32 << 20; // the most that glibc takes
  constexpr int kKept = 256 << 20;
  mallopt(M_MMAP_THRESHOLD, kLargestBlock);
  mallopt(M_TRIM_THRESHOLD, kKept);
#endif
}

} // namespace sheave
