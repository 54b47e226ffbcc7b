// The registry of model families, and the call that turns a path into a model.
// A family registers itself by the last line of its file.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sheave/models/model.h"
#include "sheave/weights/checkpoint.h"

namespace sheave {

class LayerLoader;

/// Builds a family's model from a checkpoint's layers. Throws FileError, naming
/// the tensor or key, when the checkpoint isn't one of that family.
using ModelMaker = std::unique_ptr<Model> (*)(const LayerLoader& load);

/// Makes `model_type` known. Called by SHEAVE_REGISTER_MODEL only.
bool register_model(const std::string& model_type, ModelMaker maker);

/// The registered families, sorted.
std::vector<std::string> model_types();

/// Builds the model of an opened checkpoint. Throws FileError that names the
/// architecture when no family is registered for it.
std::unique_ptr<Model> make_model(
    const Checkpoint& checkpoint,
    Arithmetic arithmetic = Arithmetic::kFast);

} // namespace sheave

#define SHEAVE_REGISTER_MODEL(model_type, Class)          \
  [[maybe_unused]] static const bool registered_##Class = \
      ::sheave::register_model(                           \
          model_type,                                     \
          [](const ::sheave::LayerLoader& load)           \
              -> std::unique_ptr<::sheave::Model> {       \
            return std::make_unique<Class>(load);         \
          })
