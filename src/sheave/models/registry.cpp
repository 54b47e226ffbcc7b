#include "sheave/models/registry.h"

#include <map>
#include <utility>

#include "sheave/base/check.h"
#include "sheave/base/file_error.h"
#include "sheave/models/layer_loader.h"

namespace sheave {
namespace {

/// Filled before main() by the families' static initializers, read after.
std::map<std::string, ModelMaker>& makers() {
  static std::map<std::string, ModelMaker> instance;
  return instance;
}

std::string joined(const std::vector<std::string>& names) {
  std::string result;
  for (const std::string& name : names) {
    result += (result.empty() ? "" : ", ") + name;
  }
  return result;
}

} // namespace

bool register_model(const std::string& model_type, ModelMaker maker) {
  const bool fresh = makers().emplace(model_type, maker).second;
  SHEAVE_CHECK(fresh, "model type registered twice: " + model_type);
  return fresh;
}

std::vector<std::string> model_types() {
  std::vector<std::string> names;
  for (const auto& [name, maker] : makers()) {
    names.push_back(name);
  }
  return names;
}

std::unique_ptr<Model> make_model(
    const Checkpoint& checkpoint,
    Arithmetic arithmetic) {
  const std::string& model_type = checkpoint.config().model_type;
  const auto maker = makers().find(model_type);
  if (maker == makers().end()) {
    throw FileError(
        checkpoint.path().string() + ": architecture \"" + model_type +
        "\" is not supported (supported: " + joined(model_types()) + ")");
  }
  return maker->second(LayerLoader(checkpoint, arithmetic));
}

} // namespace sheave
