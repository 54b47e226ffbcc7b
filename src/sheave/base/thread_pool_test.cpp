#include "sheave/base/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <thread>
#include <vector>

namespace sheave {
namespace {

TEST(ThreadPool, RunsEachTaskOnce) {
  for (const int threads : {1, 2, 3, 7}) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.num_threads(), threads);
    for (const int tasks : {0, 1, 2, 5, 64, 1000}) {
      std::vector<std::atomic<int>> counts(static_cast<size_t>(tasks));
      pool.run(tasks, [&](int i, int) { ++counts[static_cast<size_t>(i)]; });
      for (const auto& count : counts) {
        ASSERT_EQ(count.load(), 1);
      }
    }
  }
}

TEST(ThreadPool, IsReadyAgainAfterManyShortJobs) {
  ThreadPool pool(3);
  std::atomic<int64_t> sum = 0;
  for (int job = 0; job < 5000; ++job) {
    pool.run(4, [&](int i, int) { sum += i + 1; });
  }
  EXPECT_EQ(sum.load(), 5000 * 10);
}

TEST(ThreadPool, WakesThreadsThatWentToSleep) {
  ThreadPool pool(2);
  std::atomic<int> sum = 0;
  for (int job = 0; job < 5; ++job) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    pool.run(8, [&](int, int) { ++sum; });
  }
  EXPECT_EQ(sum.load(), 40);
}

TEST(ThreadPool, LetsCallersTakeTurns) {
  ThreadPool pool(2);
  std::atomic<int> sum = 0;
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 3; ++caller) {
    callers.emplace_back([&] {
      for (int job = 0; job < 200; ++job) {
        pool.run(5, [&](int, int) { ++sum; });
      }
    });
  }
  for (std::thread& caller : callers) {
    caller.join();
  }
  EXPECT_EQ(sum.load(), 3 * 200 * 5);
}

TEST(ThreadPool, CutsMoreTasksThanATicketHolds) {
  ThreadPool pool(2);
  std::atomic<int64_t> sum = 0;
  const int tasks = (1 << 20) + 3;
  pool.run(tasks, [&](int i, int) { sum += i; });
  EXPECT_EQ(sum.load(), int64_t{tasks} * (tasks - 1) / 2);
}

TEST(ThreadPool, GivesEachRunningTaskAWorkerOfItsOwn) {
  ThreadPool pool(3);
  std::vector<std::atomic<int>> busy(3);
  std::atomic<int> clashes = 0;
  pool.run(3000, [&](int, int worker) {
    auto& mine = busy[static_cast<size_t>(worker)];
    clashes += mine.fetch_add(1);
    mine.fetch_sub(1);
  });
  EXPECT_EQ(clashes.load(), 0);
}

TEST(ThreadPool, RefusesNoThreads) {
  EXPECT_THROW(ThreadPool(0), std::invalid_argument);
}

} // namespace
} // namespace sheave
