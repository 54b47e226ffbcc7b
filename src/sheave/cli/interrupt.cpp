#include "sheave/cli/interrupt.h"

namespace sheave {
namespace {

// Written by the signal handler, which can reach nothing but globals.
std::atomic<bool> interrupted = false;
static_assert(std::atomic<bool>::is_always_lock_free);

void on_interrupt(int /*signal*/) {
  interrupted.store(true);
}

} // namespace

InterruptScope::InterruptScope() {
  interrupted.store(false);
  struct sigaction action{};
  action.sa_handler = on_interrupt; // no SA_RESTART: reads must return
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, &previous_);
}

InterruptScope::~InterruptScope() {
  sigaction(SIGINT, &previous_, nullptr);
}

std::atomic<bool>& InterruptScope::flag() {
  return interrupted;
}

} // namespace sheave
