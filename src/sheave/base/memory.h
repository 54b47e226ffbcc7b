// What the operating system says of this process's memory.
#pragma once

#include <cstdint>

namespace sheave {

/// Peak resident set size of this process so far, in bytes; 0 where the
/// system doesn't tell.
uint64_t peak_rss_bytes();

} // namespace sheave
