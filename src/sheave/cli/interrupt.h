// Ctrl-C as a flag instead of the program's end, for a while.
#pragma once

#include <atomic>
#include <csignal>

namespace sheave {

/// While one lives, SIGINT sets the flag and interrupts blocking reads; before
/// and after, SIGINT does what it did. One at a time.
class InterruptScope {
 public:
  InterruptScope();
  ~InterruptScope();
  InterruptScope(const InterruptScope&) = delete;
  InterruptScope& operator=(const InterruptScope&) = delete;

  /// Set by SIGINT; whoever handles it clears it.
  static std::atomic<bool>& flag();

 private:
  struct sigaction previous_{};
};

} // namespace sheave
