// A config.json. What is accepted must hold together: check_config passes.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "sheave/base/file_error.h"
#include "sheave/weights/model_config.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const auto config = sheave::config_from_json(text, "config.json");
    if (sheave::knows_model_type(config.model_type)) {
      sheave::check_config(config, "config.json");
    }
  } catch (const sheave::FileError& error) {
    if (std::string_view(error.what()).find('\n') != std::string_view::npos) {
      std::abort(); // a message is one line
    }
  }
  return 0;
}
