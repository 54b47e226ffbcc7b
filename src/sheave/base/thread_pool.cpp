#include "sheave/base/thread_pool.h"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace sheave {
namespace {

constexpr int kIndexBits = 20;
constexpr uint64_t kIndexMask = (uint64_t{1} << kIndexBits) - 1;
constexpr int kMaxBatch = 1 << 19;
constexpr int kSpins = 500;   // some microseconds
constexpr int kYields = 2000; // about a millisecond

void pause_briefly() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

uint64_t next_of(uint64_t ticket) {
  return ticket & kIndexMask;
}

uint64_t tasks_of(uint64_t ticket) {
  return (ticket >> kIndexBits) & kIndexMask;
}

uint64_t generation_of(uint64_t ticket) {
  return ticket >> (2 * kIndexBits);
}

/// Waits until the value differs from `old`: spinning first, then letting
/// others run, then asleep. A thread that sleeps between the operations of a
/// step comes back late, and on a busy machine on its waker's core.
uint32_t wait_for_change(const std::atomic<uint32_t>& value, uint32_t old) {
  for (int round = 0; round < kSpins + kYields; ++round) {
    const uint32_t now = value.load(std::memory_order_acquire);
    if (now != old) {
      return now;
    }
    if (round < kSpins) {
      pause_briefly();
    } else {
      std::this_thread::yield();
    }
  }
  value.wait(old, std::memory_order_acquire);
  return value.load(std::memory_order_acquire);
}

} // namespace

ThreadPool::ThreadPool(int num_threads) {
  if (num_threads < 1) {
    throw std::invalid_argument(
        "[thread_pool] expected at least 1 thread, got " +
        std::to_string(num_threads));
  }
  for (int i = 1; i < num_threads; ++i) {
    workers_.emplace_back([this, i] { worker_loop(i); });
  }
}

ThreadPool::~ThreadPool() {
  stopping_.store(true);
  wakeups_.fetch_add(1, std::memory_order_release);
  wakeups_.notify_all();
  for (std::thread& worker : workers_) {
    worker.join();
  }
}

void ThreadPool::run_erased(
    int num_tasks,
    TaskFunction function,
    const void* context) {
  if (num_tasks <= 0) {
    return;
  }
  const std::lock_guard lock(run_mutex_);
  if (num_tasks == 1 || workers_.empty()) {
    for (int i = 0; i < num_tasks; ++i) {
      function(context, i, 0);
    }
    return;
  }
  function_.store(function, std::memory_order_relaxed);
  context_.store(context, std::memory_order_relaxed);
  for (int first = 0; first < num_tasks; first += kMaxBatch) {
    run_batch(first, std::min(kMaxBatch, num_tasks - first));
  }
}

void ThreadPool::run_batch(int first, int num_tasks) {
  first_.store(first, std::memory_order_relaxed);
  remaining_.store(static_cast<uint32_t>(num_tasks), std::memory_order_relaxed);
  const uint64_t generation =
      generation_of(ticket_.load(std::memory_order_relaxed)) + 1;
  const auto tasks = static_cast<uint64_t>(num_tasks);
  ticket_.store(
      generation << (2 * kIndexBits) | tasks << kIndexBits,
      std::memory_order_release);
  wakeups_.fetch_add(1, std::memory_order_release);
  wakeups_.notify_all();
  work_on(generation, 0);
  uint32_t left = remaining_.load(std::memory_order_acquire);
  while (left != 0) {
    left = wait_for_change(remaining_, left);
  }
}

// Takes tasks until none of this generation are left.
void ThreadPool::work_on(uint64_t generation, int worker) {
  uint64_t ticket = ticket_.load(std::memory_order_acquire);
  for (;;) {
    if (generation_of(ticket) != (generation & (UINT64_MAX >> 40)) ||
        next_of(ticket) >= tasks_of(ticket)) {
      return;
    }
    if (!ticket_.compare_exchange_weak(
            ticket,
            ticket + 1,
            std::memory_order_acq_rel)) {
      continue;
    }
    // The job can't end before this task has, so these are its own.
    const int index = first_.load(std::memory_order_relaxed) +
                      static_cast<int>(next_of(ticket));
    function_.load(std::memory_order_relaxed)(
        context_.load(std::memory_order_relaxed),
        index,
        worker);
    if (remaining_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      remaining_.notify_all();
    }
    ticket = ticket_.load(std::memory_order_acquire);
  }
}

void ThreadPool::worker_loop(int worker) {
  uint32_t seen = 0;
  while (!stopping_.load()) {
    work_on(generation_of(ticket_.load(std::memory_order_acquire)), worker);
    seen = wait_for_change(wakeups_, seen);
  }
}

} // namespace sheave
