#include "sheave/kernels/runtime.h"

#include <mlx/device.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <stdexcept>

#include "sheave/base/check.h"
#include "sheave/base/cpu_info.h"

namespace sheave::kernels {
namespace {

constexpr const char* kReference = "reference";

/// The one piece of state that kernels share.
struct Runtime {
  const KernelTable* table = nullptr; // null for the reference
  std::unique_ptr<ThreadPool> pool;
};

std::vector<const KernelTable*> available_tables() {
  const CpuFeatures features = cpu_features();
  std::vector<const KernelTable*> tables;
  if (features.avx512) {
    tables.push_back(avx512_vnni_table());
  }
  if (features.avx2) {
    tables.push_back(avx2_table());
  }
  tables.push_back(base_table());
  return tables;
}

const KernelTable* find_table(const std::string& target) {
  if (target == kReference) {
    return nullptr;
  }
  const auto tables = available_tables();
  if (target.empty()) {
    return tables.front();
  }
  const auto found =
      std::find_if(tables.begin(), tables.end(), [&](const KernelTable* table) {
        return target == table->name;
      });
  if (found != tables.end()) {
    return *found;
  }
  std::string names;
  for (const std::string& name : available_targets()) {
    names += (names.empty() ? "" : ", ") + name;
  }
  throw std::invalid_argument(
      "[kernels] target \"" + target + "\" is not one this machine has (" +
      names + ")");
}

Runtime make_runtime(const RuntimeOptions& options) {
  if (options.threads < 0 || options.threads > 1024) {
    throw std::invalid_argument(
        "[kernels] expected 0..1024 threads, got " +
        std::to_string(options.threads));
  }
  std::string target = options.target;
  if (const char* forced = std::getenv("SHEAVE_KERNELS");
      target.empty() && forced != nullptr) {
    target = forced;
  }
  Runtime runtime;
  runtime.table = find_table(target);
  runtime.pool = std::make_unique<ThreadPool>(
      options.threads == 0 ? usable_cores() : options.threads);
  return runtime;
}

Runtime& runtime() {
  static Runtime instance = make_runtime({});
  return instance;
}

} // namespace

void configure(const RuntimeOptions& options) {
  runtime() = make_runtime(options);
}

std::string target_name() {
  return use_reference() ? kReference : runtime().table->name;
}

int num_threads() {
  return runtime().pool->num_threads();
}

std::vector<std::string> available_targets() {
  std::vector<std::string> names;
  for (const KernelTable* table : available_tables()) {
    names.emplace_back(table->name);
  }
  names.emplace_back(kReference);
  return names;
}

bool use_reference() {
  return runtime().table == nullptr ||
         mlx::core::default_device() == mlx::core::Device::gpu;
}

const KernelTable& kernel_table() {
  SHEAVE_CHECK(runtime().table != nullptr, "no kernel target is in use");
  return *runtime().table;
}

const KernelTable& decoding_table() {
  const KernelTable* table = runtime().table;
  return table != nullptr ? *table : *available_tables().front();
}

ThreadPool& thread_pool() {
  return *runtime().pool;
}

} // namespace sheave::kernels
