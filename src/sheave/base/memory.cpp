#include "sheave/base/memory.h"

#include <sys/resource.h>

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

} // namespace sheave
