#include "sheave/kernels/profile.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <utility>

namespace sheave::kernels {
namespace {

using Clock = std::chrono::steady_clock;

std::atomic<bool> is_enabled = false;

/// Primitives run on MLX's stream threads, the profile is taken elsewhere.
struct Profile {
  std::mutex mutex;
  std::vector<KernelTime> kernels;

  void add(const char* name, int64_t nanoseconds) {
    const std::lock_guard lock(mutex);
    // A handful of names: looking through them is quicker than a map.
    auto found = std::ranges::find(kernels, name, &KernelTime::name);
    if (found == kernels.end()) {
      found = kernels.insert(found, {.name = name});
    }
    found->calls += 1;
    found->nanoseconds += nanoseconds;
  }
};

Profile& profile() {
  static Profile instance;
  return instance;
}

} // namespace

void enable_profile(bool enabled) {
  is_enabled = enabled;
}

std::vector<KernelTime> take_profile() {
  const std::lock_guard lock(profile().mutex);
  return std::exchange(profile().kernels, {});
}

KernelTimer::KernelTimer(const char* name)
    : name_(is_enabled.load(std::memory_order_relaxed) ? name : nullptr) {
  if (name_ != nullptr) {
    start_ = Clock::now();
  }
}

KernelTimer::~KernelTimer() {
  if (name_ != nullptr) {
    const std::chrono::nanoseconds elapsed = Clock::now() - start_;
    profile().add(name_, elapsed.count());
  }
}

} // namespace sheave::kernels
