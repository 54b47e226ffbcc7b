#include "sheave/weights/utf8.h"

#include <cstddef>
#include <cstdint>

namespace sheave {
namespace {

/// The bytes of a code point's first byte's sequence; 0 for a byte that none
/// begins with.
size_t utf8_length(uint8_t first) {
  return first < 0x80   ? 1
         : first < 0xC2 ? 0
         : first < 0xE0 ? 2
         : first < 0xF0 ? 3
         : first < 0xF5 ? 4
                        : 0;
}

} // namespace

bool is_utf8(std::string_view text) {
  const auto at = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  for (size_t i = 0; i < text.size();) {
    const size_t length = utf8_length(at(i));
    if (length == 0 || length > text.size() - i) {
      return false;
    }
    for (size_t j = 1; j < length; ++j) {
      if ((at(i + j) & 0xC0) != 0x80) {
        return false;
      }
    }
    // Overlong forms, surrogates, and what lies beyond U+10FFFF.
    if (length > 2) {
      const unsigned two = at(i) << 8 | at(i + 1);
      if ((length == 3 && (two < 0xE0A0 || (two >= 0xEDA0 && two < 0xEE00))) ||
          (length == 4 && (two < 0xF090 || two >= 0xF490))) {
        return false;
      }
    }
    i += length;
  }
  return true;
}

} // namespace sheave
