#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "sheave/cli/command_support.h"
#include "sheave/cli/commands.h"
#include "sheave/cli/progress_bar.h"
#include "sheave/engine/build_info.h"
#include "sheave/engine/perplexity.h"

namespace sheave {
namespace {

struct PerplexityCommandOptions {
  std::string model;
  std::string file;
  int context = 512;
  int threads = 0;
  bool exact = false;
  bool json = false;
};

void measure(const PerplexityCommandOptions& options) {
  const std::string text = read_text(options.file);
  configure_threads(options.threads);
  const LanguageModel model =
      load_model(options.model, arithmetic(options.exact));
  Perplexity result;
  {
    ProgressBar bar("perplexity", stderr);
    result = value_or_throw(perplexity(
        model,
        text,
        {.context_tokens = options.context,
         .cache_dtype = cache_options(options.exact).dtype,
         .on_chunk = [&](int done, int total, double /*so_far*/) {
           bar.update(
               static_cast<uint64_t>(done),
               static_cast<uint64_t>(total));
         }}));
  }
  if (options.json) {
    const nlohmann::ordered_json json = {
        {"perplexity", result.perplexity},
        {"tokens", result.tokens},
        {"chunks", result.chunks},
        {"context", options.context}};
    write_stdout(json.dump() + "\n");
    return;
  }
  write_stdout(fmt::format(
      "perplexity {:.4f} over {} tokens in {} chunks of {}\n",
      result.perplexity,
      result.tokens,
      result.chunks,
      options.context));
}

} // namespace

void add_perplexity_command(CLI::App& app) {
  auto options = std::make_shared<PerplexityCommandOptions>();
  CLI::App* command = app.add_subcommand(
      "perplexity",
      "Perplexity of a text, by llama.cpp's method: chunks, second half "
      "scored");
  command->add_option("MODEL", options->model, kModelHelp)->required();
  command->add_option("FILE", options->file, "text file, - for standard input")
      ->required();
  command->add_option("--ctx", options->context)
      ->description("tokens of a chunk (default 512)")
      ->check(CLI::Range(4, 1 << 28));
  command->add_option("--threads", options->threads, "kernel threads")
      ->check(CLI::Range(1, 1024));
  command->add_flag("--exact", options->exact, "float32 throughout");
  command->add_flag("--json", options->json, "print one JSON object");
  command->footer("  sheave perplexity smollm2 book.txt --ctx 256");
  command->callback([options] { measure(*options); });
}

} // namespace sheave
