#include "sheave/cli/progress_bar.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

namespace sheave {

std::string progress_line(const std::string& label, double share) {
  constexpr int kWidth = 30;
  share = std::clamp(share, 0.0, 1.0);
  const int filled = static_cast<int>(share * kWidth);
  return label + " [" + std::string(static_cast<size_t>(filled), '#') +
         std::string(static_cast<size_t>(kWidth - filled), ' ') + "] " +
         std::to_string(static_cast<int>(share * 100)) + " %";
}

ProgressBar::ProgressBar(std::string label, std::FILE* stream)
    : label_(std::move(label)),
      stream_(stream),
      enabled_(isatty(fileno(stream)) != 0) {}

ProgressBar::~ProgressBar() {
  if (drawn_) {
    std::fputs("\r\x1b[K", stream_); // back to the start, erase the line
    std::fflush(stream_);
  }
}

void ProgressBar::update(uint64_t done, uint64_t total) {
  const auto now = std::chrono::steady_clock::now();
  const bool due = !drawn_ || now - last_ > std::chrono::milliseconds(50);
  if (!enabled_ || total == 0 || !due) {
    return;
  }
  drawn_ = true;
  last_ = now;
  const double share = static_cast<double>(done) / static_cast<double>(total);
  std::fputs(("\r" + progress_line(label_, share)).c_str(), stream_);
  std::fflush(stream_);
}

} // namespace sheave
