// ThreadPool: a few persistent threads for work that is cut into tasks. The
// cut belongs to the caller, so that results never depend on how many threads
// there are; the pool only hands tasks out.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

namespace sheave {

/// Threads wait for work by spinning for some microseconds, then asleep.
class ThreadPool {
 public:
  /// Starts num_threads - 1 threads; the caller of run() is the last. Throws
  /// std::invalid_argument for num_threads < 1.
  explicit ThreadPool(int num_threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int num_threads() const {
    return static_cast<int>(workers_.size()) + 1;
  }

  /// Calls task(i, worker) for each i in [0, num_tasks), each once, on any
  /// thread and in any order; returns when all are done. worker, within
  /// [0, num_threads()), is one's own while the task runs: an index for
  /// scratch memory. Tasks must not throw and must not call run(). Callable
  /// from any thread; calls take turns.
  template <typename Task>
  void run(int num_tasks, const Task& task) {
    run_erased(
        num_tasks,
        [](const void* context, int index, int worker) {
          (*static_cast<const Task*>(context))(index, worker);
        },
        &task);
  }

 private:
  using TaskFunction = void (*)(const void* context, int index, int worker);

  void run_erased(int num_tasks, TaskFunction function, const void* context);
  void run_batch(int first, int num_tasks);
  void work_on(uint64_t generation, int worker);
  void worker_loop(int worker);

  std::mutex run_mutex_;
  std::vector<std::thread> workers_;
  // generation << 40 | tasks << 20 | next task: one word, so that a thread
  // that wakes late can't take a task of a job that is over.
  std::atomic<uint64_t> ticket_ = 0;
  std::atomic<uint32_t> wakeups_ = 0; // changes with each job; slept on
  std::atomic<uint32_t> remaining_ = 0;
  std::atomic<TaskFunction> function_ = nullptr;
  std::atomic<const void*> context_ = nullptr;
  std::atomic<int> first_ = 0;
  std::atomic<bool> stopping_ = false;
};

} // namespace sheave
