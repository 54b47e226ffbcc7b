// What the operating system says of this process's memory.
#pragma once

#include <cstdint>

namespace sheave {

/// Peak resident set size of this process so far, in bytes; 0 where the
/// system doesn't tell.
uint64_t peak_rss_bytes();

/// Makes the allocator keep freed memory for reuse, up to some 256 MB, where it
/// would give large blocks back to the system at once: a step frees and takes
/// the same blocks as the one before, and fresh pages cost more than the work
/// on them. For programs, at their start; glibc only, elsewhere without effect.
void keep_freed_memory();

} // namespace sheave
