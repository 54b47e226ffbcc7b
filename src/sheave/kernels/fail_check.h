// fail_check: how operations refuse their arguments. Internal to the kernels
// room.
#pragma once

#include <mlx/utils.h>

#include <sstream>
#include <stdexcept>

namespace sheave::kernels {

/// Throws std::invalid_argument: "[op] " and the parts, one after another.
template <typename... Parts>
[[noreturn]] void fail_check(const char* op, const Parts&... parts) {
  std::ostringstream message;
  message << "[" << op << "] ";
  (message << ... << parts);
  throw std::invalid_argument(message.str());
}

} // namespace sheave::kernels
