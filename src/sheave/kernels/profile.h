// Profile: how often each of our primitives ran and how long, over all threads
// that evaluate. Off unless asked for; it changes no result.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace sheave::kernels {

/// One kind of primitive, by the name that MLX knows it by.
struct KernelTime {
  std::string name;
  int64_t calls = 0;
  int64_t nanoseconds = 0;
};

/// Starts or stops timing. From any thread; what was measured stays.
void enable_profile(bool enabled);

/// What was measured since the last call, in the order of first runs, and
/// forgets it. Primitives still running aren't in it: evaluate first.
std::vector<KernelTime> take_profile();

/// Times a primitive from here to the end of the scope; costs one flag's
/// reading while the profile is off. name: must outlive the timer.
class KernelTimer {
 public:
  explicit KernelTimer(const char* name);
  ~KernelTimer();
  KernelTimer(const KernelTimer&) = delete;
  KernelTimer& operator=(const KernelTimer&) = delete;

 private:
  const char* name_; // null while the profile is off
  std::chrono::steady_clock::time_point start_;
};

} // namespace sheave::kernels
