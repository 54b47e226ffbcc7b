#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>

#include "sheave/cli/command_support.h"
#include "sheave/cli/commands.h"
#include "sheave/engine/model_path.h"

namespace sheave {
namespace {

void list_models() {
  for (const BundledModel& model : bundled_models()) {
    const auto path = models_folder() / model.file;
    const bool present = std::filesystem::exists(path);
    write_stdout(fmt::format(
        "{:12} {}{}\n",
        model.name,
        path.string(),
        present ? "" : "  (not fetched)"));
  }
}

} // namespace

void add_models_command(CLI::App& app) {
  app.add_subcommand("models", "List the bundled models")
      ->callback(list_models);
}

} // namespace sheave
