// How much memory loading takes: alone in its process, since a peak can't be
// taken back.

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "sheave/base/memory.h"
#include "sheave/weights/checkpoint.h"

namespace sheave {
namespace {

namespace fs = std::filesystem;

fs::path models_folder() {
  if (const char* home = std::getenv("SHEAVE_HOME")) {
    return fs::path(home) / "models";
  }
  const char* home = std::getenv("HOME");
  return fs::path(home == nullptr ? "" : home) / ".cache/sheave/models";
}

/// Peak resident bytes since the program started. getrusage's also counts what
/// the process was before exec.
uint64_t peak_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    if (uint64_t kib = 0; word == "VmHWM:" && status >> kib) {
      return kib * 1024;
    }
  }
  return peak_rss_bytes();
}

/// Every tensor as the model would take it.
std::vector<mx::array> load_all(const Checkpoint& checkpoint) {
  std::vector<mx::array> arrays;
  for (const CheckpointTensor& tensor : checkpoint.tensors()) {
    const std::string& name = tensor.canonical_name;
    const auto& shape = tensor.info.shape;
    if (shape.size() == 1) {
      arrays.push_back(checkpoint.vector(name, static_cast<int>(shape[0])));
    } else {
      const auto module = name.substr(0, name.rfind('.'));
      arrays.push_back(checkpoint
                           .weight(
                               module,
                               static_cast<int>(shape[0]),
                               static_cast<int>(shape[1]))
                           .data);
    }
  }
  return arrays;
}

/// Reads each byte.
uint64_t touch(const std::vector<mx::array>& arrays) {
  uint64_t sum = 0;
  for (const mx::array& array : arrays) {
    const auto* bytes = array.data<uint8_t>();
    for (size_t i = 0; i < array.nbytes(); ++i) {
      sum += bytes[i];
    }
  }
  return sum;
}

TEST(LoadMemory, StaysUnderOneAndAHalfFilesAnd80MB) {
  const fs::path path = models_folder() / "SmolLM2-135M-Instruct.Q4_1.gguf";
  if (!fs::exists(path)) {
    GTEST_SKIP() << path << " is not there; scripts/setup fetches it";
  }
  const auto start = std::chrono::steady_clock::now();
  const auto checkpoint = Checkpoint::open(path);
  const std::chrono::duration<double> opened =
      std::chrono::steady_clock::now() - start;
  const auto arrays = load_all(checkpoint);
  const std::chrono::duration<double> loaded =
      std::chrono::steady_clock::now() - start;
  EXPECT_GT(touch(arrays), 0U);
  const uint64_t file = fs::file_size(path);
  const uint64_t peak = peak_bytes();
  std::cout << "file " << file / 1000000 << " MB, peak " << peak / 1000000
            << " MB, opened in " << opened.count() * 1e3 << " ms, loaded in "
            << loaded.count() * 1e3 << " ms\n";
  EXPECT_LT(peak, file + file / 2 + 80'000'000);
}

} // namespace
} // namespace sheave
