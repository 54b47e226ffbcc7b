// SHEAVE_CHECK and SHEAVE_DCHECK: conditions that only a bug of ours can
// break. They throw InternalError; nothing in Sheave aborts the process.
#pragma once

#include <stdexcept>
#include <string>

namespace sheave {

/// A broken invariant of Sheave itself.
class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

/// Throws InternalError with the place, the condition and the message.
[[noreturn]] void check_failed(
    const char* file,
    int line,
    const char* condition,
    const std::string& message);

} // namespace sheave

#define SHEAVE_CHECK(condition, message)                               \
  do {                                                                 \
    if (!(condition)) {                                                \
      ::sheave::check_failed(__FILE__, __LINE__, #condition, message); \
    }                                                                  \
  } while (false)

#ifdef NDEBUG
#define SHEAVE_DCHECK(condition, message) \
  do {                                    \
  } while (false)
#else
#define SHEAVE_DCHECK(condition, message) SHEAVE_CHECK(condition, message)
#endif
