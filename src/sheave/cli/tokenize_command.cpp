#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "sheave/cli/command_support.h"
#include "sheave/cli/commands.h"

namespace sheave {
namespace {

struct TokenizeOptions {
  std::string model;
  std::optional<std::string> text;
  bool no_special = false;
  bool plain = false;
  bool json = false;
};

/// A token's bytes as they can be shown: invalid UTF-8 and control characters
/// as escapes.
std::string piece_text(std::string_view bytes) {
  return nlohmann::json(std::string(bytes))
      .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

void tokenize(const TokenizeOptions& options) {
  const std::string text = options.text ? *options.text : read_text("-");
  const LanguageModel model = load_model(options.model);
  const Tokenizer& tokenizer = model.tokenizer();
  const auto ids = value_or_throw(tokenizer.encode(
      text,
      {.add_special = !options.no_special, .parse_special = !options.plain}));
  if (options.json) {
    nlohmann::ordered_json pieces = nlohmann::ordered_json::array();
    for (const int32_t id : ids) {
      pieces.push_back(std::string(tokenizer.token_bytes(id)));
    }
    const nlohmann::ordered_json json = {
        {"count", ids.size()},
        {"ids", ids},
        {"pieces", pieces}};
    write_stdout(
        json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) +
        "\n");
    return;
  }
  for (const int32_t id : ids) {
    write_stdout(
        fmt::format("{:>7}  {}\n", id, piece_text(tokenizer.token_bytes(id))));
  }
}

} // namespace

void add_tokenize_command(CLI::App& app) {
  auto options = std::make_shared<TokenizeOptions>();
  CLI::App* command =
      app.add_subcommand("tokenize", "Show the tokens of a text");
  command->add_option("MODEL", options->model, kModelHelp)->required();
  command->add_option("TEXT", options->text)
      ->description("the text (default: standard input)");
  command->add_flag("--no-special", options->no_special)
      ->description("don't put BOS or EOS around the text");
  command->add_flag("--plain", options->plain)
      ->description("read the spellings of special tokens as ordinary text");
  command->add_flag("--json", options->json, "print one JSON object");
  command->footer("  sheave tokenize smollm2 \"Hello, world\"");
  command->callback([options] { tokenize(*options); });
}

} // namespace sheave
