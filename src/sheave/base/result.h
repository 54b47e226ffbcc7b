// Result and Error: how a function says that something expected went wrong at
// run time (a bad request, a broken file, a full context). Wrong calls and
// our own bugs are exceptions instead; see check.h.
#pragma once

#include <string>
#include <tl/expected.hpp>
#include <utility>

namespace sheave {

/// What kind of thing went wrong; callers branch on it, users read `message`.
enum class ErrorCode {
  kInvalidArgument, // the request can't be fulfilled as asked
  kNotFound,        // a file, model or key that was named isn't there
  kInvalidFile,     // a file's content breaks its format
  kUnsupported,     // well-formed, but not something Sheave can do
  kContextFull,     // the tokens don't fit the model's context
  kCancelled,       // the caller gave up
  kIo,              // the operating system refused
  kInternal,        // a bug of ours, reported rather than hidden
};

/// The code's name as scripts see it, e.g. "invalid_file".
const char* error_code_name(ErrorCode code);

/// One failure. `message` is a single line that names what and where.
struct Error {
  ErrorCode code;
  std::string message;
};

/// A value or an Error.
template <typename T>
using Result = tl::expected<T, Error>;

/// Builds the failed Result: `return fail(ErrorCode::kNotFound, "...")`.
inline tl::unexpected<Error> fail(ErrorCode code, std::string message) {
  return tl::unexpected<Error>(Error{code, std::move(message)});
}

} // namespace sheave
