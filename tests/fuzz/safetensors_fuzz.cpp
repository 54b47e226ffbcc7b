// A safetensors header, and the same bytes as a shard index.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string_view>

#include "sheave/base/file_error.h"
#include "sheave/weights/finite.h"
#include "sheave/weights/safetensors.h"

namespace {

template <typename Parse>
void expect_file_error_or_nothing(const Parse& parse) {
  try {
    parse();
  } catch (const sheave::FileError& error) {
    if (std::string_view(error.what()).find('\n') != std::string_view::npos) {
      std::abort(); // a message is one line
    }
  }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span<const uint8_t> bytes(data, size);
  expect_file_error_or_nothing([&] {
    for (const auto& info : sheave::parse_safetensors(bytes, "fuzz")) {
      (void)sheave::first_non_finite(
          info.type,
          bytes.subspan(info.offset, info.bytes));
    }
  });
  expect_file_error_or_nothing([&] {
    (void)sheave::parse_shard_index(
        {reinterpret_cast<const char*>(data), size},
        "index.json");
  });
  return 0;
}
