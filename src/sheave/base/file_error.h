// FileError: a file that can't be used. Its message is one line that names the
// file, the tensor or key in it, what was found and what was expected.
#pragma once

#include <stdexcept>

namespace sheave {

class FileError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

} // namespace sheave
