// What the commands share: loading with progress, reading files and stdin,
// writing to stdout, and the exceptions that main turns into exit codes.
#pragma once

#include <filesystem>
#include <stdexcept>
#include <string>
#include <string_view>

#include "sheave/base/result.h"
#include "sheave/engine/language_model.h"

namespace sheave {

/// Exit codes of the program.
enum ExitCode {
  kExitOk = 0,
  kExitInternal = 1,      // a bug, or the system failed
  kExitBadInput = 2,      // a bad argument, file, model or prompt
  kExitInterrupted = 130, // Ctrl-C ended the only answer
};

/// A failed Result on its way to main. what() is the message.
class CommandError : public std::runtime_error {
 public:
  explicit CommandError(const Error& error);

  ErrorCode code() const {
    return code_;
  }

 private:
  ErrorCode code_;
};

/// The value, or CommandError.
template <typename T>
T value_or_throw(Result<T> result) {
  if (!result) {
    throw CommandError(result.error());
  }
  return std::move(*result);
}

/// Loads a model by path or bundled name, with a progress bar on a terminal.
LanguageModel load_model(
    const std::string& name,
    Arithmetic arithmetic = Arithmetic::kFast);

/// A whole file, or standard input for "-". Throws CommandError.
std::string read_text(const std::string& path);

/// Whether standard input is something to read from: a pipe or a file.
bool stdin_has_text();
bool stdin_is_terminal();

/// Writes to stdout and flushes. Throws CommandError when the system refuses
/// (a full disk); a closed pipe ends the program by its signal.
void write_stdout(std::string_view text);

/// The dtype that caches store: float32 if exact, else float16.
CacheOptions cache_options(bool exact);

/// What --exact asks of the layers.
Arithmetic arithmetic(bool exact);

/// "1.2 GB"
std::string bytes_text(uint64_t bytes);

} // namespace sheave
