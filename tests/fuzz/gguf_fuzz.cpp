// A GGUF file's whole opening: header, config, texts, tensor table, and the
// scan of its tensors. Bytes in, a FileError or a table out; nothing else.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string_view>

#include "sheave/base/file_error.h"
#include "sheave/weights/checkpoint_files.h"
#include "sheave/weights/finite.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span<const uint8_t> bytes(data, size);
  try {
    const auto files = sheave::describe_gguf(bytes, "fuzz.gguf");
    for (const auto& tensor : files.tensors) {
      const auto& info = tensor.info;
      (void)sheave::first_non_finite(
          info.type,
          bytes.subspan(info.offset, info.bytes));
    }
  } catch (const sheave::FileError& error) {
    if (std::string_view(error.what()).find('\n') != std::string_view::npos) {
      std::abort(); // a message is one line
    }
  }
  return 0;
}
