#include "sheave/engine/model_path.h"

#include <cstdlib>

namespace sheave {

namespace fs = std::filesystem;

const std::vector<BundledModel>& bundled_models() {
  static const std::vector<BundledModel> models = {
      {"smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf"},
      {"gemma3-270m", "gemma-3-270m-q4_k_m.gguf"},
  };
  return models;
}

fs::path models_folder() {
  if (const char* home = std::getenv("SHEAVE_HOME")) {
    return fs::path(home) / "models";
  }
  const char* user = std::getenv("HOME");
  return fs::path(user == nullptr ? "." : user) / ".cache" / "sheave" /
         "models";
}

Result<fs::path> find_model(const std::string& name) {
  std::error_code ignored;
  if (fs::exists(name, ignored)) {
    return fs::path(name);
  }
  std::string names;
  for (const BundledModel& model : bundled_models()) {
    if (model.name != name) {
      names += (names.empty() ? "" : ", ") + model.name;
      continue;
    }
    fs::path path = models_folder() / model.file;
    if (fs::exists(path, ignored)) {
      return path;
    }
    return fail(
        ErrorCode::kNotFound,
        "bundled model " + name + " is not at " + path.string() +
            "; scripts/setup fetches it");
  }
  return fail(
      ErrorCode::kNotFound,
      name + ": no such folder or .gguf file, and not a bundled model (" +
          names + ")");
}

} // namespace sheave
