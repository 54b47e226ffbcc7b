#include "sheave/cli/command_support.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iostream>
#include <iterator>

#include "sheave/cli/progress_bar.h"
#include "sheave/engine/model_path.h"

namespace sheave {

CommandError::CommandError(const Error& error)
    : std::runtime_error(error.message), code_(error.code) {}

LanguageModel load_model(const std::string& name, Arithmetic arithmetic) {
  const auto path = value_or_throw(find_model(name));
  ProgressBar bar("loading", stderr);
  return LanguageModel::load(
      path,
      {.arithmetic = arithmetic,
       .progress = [&](uint64_t done, uint64_t total) {
         bar.update(done, total);
       }});
}

std::string read_text(const std::string& path) {
  if (path == "-") {
    return {std::istreambuf_iterator<char>(std::cin), {}};
  }
  std::ifstream file(path, std::ios::binary);
  if (!file || std::filesystem::is_directory(path)) {
    throw CommandError(
        {ErrorCode::kNotFound, path + ": can't be read as a text file"});
  }
  return {std::istreambuf_iterator<char>(file), {}};
}

bool stdin_has_text() {
  struct stat status{};
  return fstat(STDIN_FILENO, &status) == 0 &&
         (S_ISFIFO(status.st_mode) || S_ISREG(status.st_mode));
}

bool stdin_is_terminal() {
  return isatty(STDIN_FILENO) != 0;
}

void write_stdout(std::string_view text) {
  const size_t written = std::fwrite(text.data(), 1, text.size(), stdout);
  if (written != text.size() || std::fflush(stdout) != 0) {
    throw CommandError(
        {ErrorCode::kIo,
         std::string("can't write to standard output: ") +
             std::strerror(errno)});
  }
}

CacheOptions cache_options(bool exact) {
  return {.dtype = exact ? mx::float32 : mx::float16};
}

Arithmetic arithmetic(bool exact) {
  return exact ? Arithmetic::kExact : Arithmetic::kFast;
}

std::string bytes_text(uint64_t bytes) {
  if (bytes < 1000) {
    return fmt::format("{} B", bytes);
  }
  double value = static_cast<double>(bytes);
  for (const char* unit : {"kB", "MB", "GB"}) {
    value /= 1000;
    if (value < 1000) {
      return fmt::format("{:.1f} {}", value, unit);
    }
  }
  return fmt::format("{:.1f} TB", value / 1000);
}

} // namespace sheave
