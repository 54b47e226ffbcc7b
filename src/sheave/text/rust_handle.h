// How C++ holds what the Rust crate gives out, and how its return codes become
// Result. The only header of Sheave that includes the C ABI; text's sources
// include it, nobody else.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sheave/base/result.h"
#include "sheave_text.h"

namespace sheave {

/// Borrows `text` for the length of one call.
inline SheaveSlice rust_slice(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

/// Takes over bytes that Rust allocated.
inline std::string take_rust_bytes(SheaveBytes bytes) {
  std::string text(reinterpret_cast<const char*>(bytes.data), bytes.len);
  sheave_bytes_free(bytes);
  return text;
}

/// Takes over ids that Rust allocated.
inline std::vector<int32_t> take_rust_ids(SheaveIds ids) {
  std::vector<int32_t> copy(ids.data, ids.data + ids.len);
  sheave_ids_free(ids);
  return copy;
}

inline ErrorCode rust_error_code(int32_t code) {
  switch (code) {
    case SHEAVE_TEXT_INVALID_ARGUMENT:
      return ErrorCode::kInvalidArgument;
    case SHEAVE_TEXT_NOT_FOUND:
      return ErrorCode::kNotFound;
    case SHEAVE_TEXT_INVALID_FILE:
      return ErrorCode::kInvalidFile;
    case SHEAVE_TEXT_UNSUPPORTED:
      return ErrorCode::kUnsupported;
    default:
      return ErrorCode::kInternal;
  }
}

/// Calls `function(SheaveBytes* error)`; on success gives `take()`, otherwise
/// the Error that Rust described.
template <typename Function, typename Take>
auto rust_call(Function&& function, Take&& take) -> Result<decltype(take())> {
  SheaveBytes error{nullptr, 0};
  const int32_t code = function(&error);
  if (code == SHEAVE_TEXT_OK) {
    return take();
  }
  return fail(rust_error_code(code), take_rust_bytes(error));
}

/// Gives a Rust object back when its owner dies.
template <typename T, void (*free_object)(T*)>
struct RustDeleter {
  void operator()(T* object) const {
    free_object(object);
  }
};

using RustTokenizer = std::unique_ptr<
    SheaveTokenizer,
    RustDeleter<SheaveTokenizer, sheave_tokenizer_free>>;
using RustTemplate = std::unique_ptr<
    SheaveTemplate,
    RustDeleter<SheaveTemplate, sheave_template_free>>;

} // namespace sheave
