// UTF-8 validation. No MLX. Internal to the weights room.
#pragma once

#include <string_view>

namespace sheave {

/// Whether the bytes are well-formed UTF-8: no overlong forms, surrogates, or
/// code points beyond U+10FFFF.
bool is_utf8(std::string_view text);

} // namespace sheave
