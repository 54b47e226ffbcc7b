// Logging for all rooms: spdlog behind a few functions, so that no other
// header has to include it. Lines go to stderr and only there; the level comes
// from SHEAVE_LOG (trace debug info warn error off), default warn.
#pragma once

#include <string_view>

namespace sheave {

void log_debug(std::string_view message);
void log_info(std::string_view message);
void log_warn(std::string_view message);
void log_error(std::string_view message);

} // namespace sheave
