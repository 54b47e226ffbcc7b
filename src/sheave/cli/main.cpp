// The sheave program: parses the command line, runs one command, and turns
// whatever goes wrong into one line on stderr and an exit code.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>

#include "sheave/base/check.h"
#include "sheave/base/file_error.h"
#include "sheave/base/memory.h"
#include "sheave/cli/command_support.h"
#include "sheave/cli/commands.h"
#include "sheave/engine/build_info.h"

namespace sheave {
namespace {

std::string version_text() {
  const BuildInfo info = build_info();
  return fmt::format(
      "sheave {} (MLX {}, device {}, kernels {}, {} threads)",
      info.version,
      info.mlx_version,
      info.device,
      info.kernels,
      info.threads);
}

int fail(int exit_code, const std::string& message) {
  std::fprintf(stderr, "sheave: %s\n", message.c_str());
  return exit_code;
}

/// Help and version are no errors; the rest is one line and a hint.
int end_parsing(const CLI::App& app, const CLI::ParseError& error) {
  if (error.get_exit_code() == 0) {
    return app.exit(error);
  }
  const auto unknown = app.remaining();
  std::string what = error.what();
  if (app.get_subcommands().empty()) {
    what = unknown.empty() ? "a command is needed"
                           : "unknown command " + unknown.front();
  }
  return fail(kExitBadInput, what + " (sheave --help, sheave COMMAND --help)");
}

int run_program(int argc, char** argv) {
  int exit_code = kExitOk;
  CLI::App app("Runs open-weight language models on MLX.");
  app.set_version_flag("--version", version_text);
  app.require_subcommand(1);
  add_run_command(app, exit_code);
  add_inspect_command(app);
  add_perplexity_command(app);
  add_bench_command(app);
  add_tokenize_command(app);
  add_models_command(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return end_parsing(app, error);
  }
  return exit_code;
}

} // namespace
} // namespace sheave

int main(int argc, char** argv) {
  using namespace sheave; // NOLINT(google-build-using-namespace): main's own
  keep_freed_memory();
  try {
    return run_program(argc, argv);
  } catch (const CommandError& error) {
    const bool ours =
        error.code() == ErrorCode::kInternal || error.code() == ErrorCode::kIo;
    return fail(ours ? kExitInternal : kExitBadInput, error.what());
  } catch (const FileError& error) {
    return fail(kExitBadInput, error.what());
  } catch (const std::invalid_argument& error) {
    return fail(kExitBadInput, error.what());
  } catch (const std::exception& error) {
    return fail(kExitInternal, error.what());
  }
}
