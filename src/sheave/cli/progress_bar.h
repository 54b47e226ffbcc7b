// A one-line progress display on stderr, for terminals only.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>

namespace sheave {

/// "loading [#####     ] 50 %" for a share of 0 to 1.
std::string progress_line(const std::string& label, double share);

/// Draws over itself, at most every 50 ms, and erases itself at the end.
/// Nothing is written unless the stream is a terminal.
class ProgressBar {
 public:
  ProgressBar(std::string label, std::FILE* stream);
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  void update(uint64_t done, uint64_t total);

 private:
  std::string label_;
  std::FILE* stream_;
  bool enabled_;
  bool drawn_ = false;
  std::chrono::steady_clock::time_point last_;
};

} // namespace sheave
