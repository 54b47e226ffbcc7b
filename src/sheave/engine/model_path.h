// Where models lie: a path as given, or a bundled model by its short name.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "sheave/base/result.h"

namespace sheave {

/// A model that scripts/setup fetches.
struct BundledModel {
  std::string name;
  std::string file;
};

/// All of them; "smollm2" is the embedded default.
const std::vector<BundledModel>& bundled_models();

/// The folder of bundled models: $SHEAVE_HOME/models, or
/// ~/.cache/sheave/models.
std::filesystem::path models_folder();

/// The path of a model given as a folder, a .gguf file or a bundled name.
/// Fails with kNotFound, saying what was looked for and where.
Result<std::filesystem::path> find_model(const std::string& name);

} // namespace sheave
