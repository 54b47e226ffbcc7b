#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "sheave/base/memory.h"
#include "sheave/cli/chat_session.h"
#include "sheave/cli/command_support.h"
#include "sheave/cli/commands.h"
#include "sheave/cli/interrupt.h"
#include "sheave/cli/line_editor.h"
#include "sheave/cli/message_reader.h"
#include "sheave/cli/statistics.h"
#include "sheave/engine/build_info.h"

namespace sheave {
namespace {

struct RunOptions {
  std::string model;
  std::string prompt;
  std::string system;
  bool raw = false;
  bool exact = false;
  bool json = false;
  int threads = 0;
  std::optional<uint64_t> seed;
  GenerationOptions generation;
};

constexpr const char* kHelp =
    "/clear          forget the conversation\n"
    "/system TEXT    set the system message and forget the conversation\n"
    "/exit           leave (or Ctrl-D)\n"
    "\"\"\"             begin and end a message of several lines\n"
    "\\               at a line's end: the message goes on\n"
    "Ctrl-C          stop the answer\n";

void say(const std::string& line) {
  std::fprintf(stderr, "%s\n", line.c_str());
}

/// The seed to sample with: as given, or any. None for greedy decoding.
std::optional<uint64_t> choose_seed(const RunOptions& options) {
  if (options.generation.sampling.temperature == 0) {
    return std::nullopt;
  }
  return options.seed.value_or(std::random_device{}());
}

void report(const Generation& answer, std::optional<uint64_t> seed) {
  say(statistics_line(answer.stats, peak_rss_bytes(), seed));
}

void write_json(const Generation& answer, std::optional<uint64_t> seed) {
  nlohmann::ordered_json json = {
      {"text", answer.text},
      {"tokens", answer.tokens},
      {"finish_reason", finish_reason_name(answer.finish_reason)},
      {"stats", statistics_json(answer.stats, peak_rss_bytes())}};
  if (seed) {
    json["seed"] = *seed;
  }
  write_stdout(json.dump() + "\n");
}

/// One answer to one prompt.
int answer_once(
    ChatSession& session,
    const std::string& prompt,
    const RunOptions& options,
    std::optional<uint64_t> seed) {
  const InterruptScope interrupt;
  std::string last;
  const auto stream = [&](std::string_view text) {
    if (!options.json) {
      write_stdout(text);
      last = text;
    }
  };
  const Generation answer =
      value_or_throw(session.answer(prompt, stream, &InterruptScope::flag()));
  if (options.json) {
    write_json(answer, seed);
  } else {
    if (!last.ends_with('\n')) {
      write_stdout("\n");
    }
    report(answer, seed);
  }
  return answer.finish_reason == FinishReason::kCancelled ? kExitInterrupted
                                                          : kExitOk;
}

/// Carries out a line that begins with "/". False: leave the chat.
bool obey(ChatSession& session, const std::string& line) {
  const size_t space = line.find(' ');
  const std::string command = line.substr(0, space);
  const std::string rest =
      space == std::string::npos ? "" : line.substr(space + 1);
  if (command == "/exit" || command == "/bye" || command == "/quit") {
    return false;
  }
  if (command == "/clear") {
    session.clear();
  } else if (command == "/system") {
    session.set_system(rest);
  } else {
    if (command != "/help" && command != "/?") {
      say("unknown command " + command);
    }
    std::fputs(kHelp, stderr);
  }
  return true;
}

/// One turn of a chat; what goes wrong is said and the chat goes on.
void chat_turn(
    ChatSession& session,
    const std::string& message,
    std::optional<uint64_t> seed) {
  const InterruptScope interrupt;
  const auto answer = session.answer(
      message,
      [](std::string_view text) { write_stdout(text); },
      &InterruptScope::flag());
  if (!answer) {
    say("sheave: " + answer.error().message);
    if (answer.error().code == ErrorCode::kContextFull) {
      say("(/clear forgets the conversation)");
    }
    return;
  }
  write_stdout("\n");
  report(*answer, seed);
}

int chat(
    ChatSession& session,
    const RunOptions& options,
    std::optional<uint64_t> seed) {
  say(options.model + " - /help for commands, Ctrl-D to leave");
  LineEditor editor;
  MessageReader reader(
      [&](const std::string& prompt) { return editor.read(prompt); });
  while (const auto message = reader.read()) {
    if (message->starts_with('/')) {
      if (!obey(session, *message)) {
        break;
      }
    } else if (!message->empty()) {
      chat_turn(session, *message, seed);
    }
  }
  return kExitOk;
}

/// The prompt from the argument and standard input; nothing for a chat.
std::optional<std::string> find_prompt(const RunOptions& options) {
  if (options.prompt == "-") {
    return read_text("-");
  }
  if (!stdin_has_text()) {
    const bool absent = options.prompt.empty();
    if (absent && !stdin_is_terminal()) {
      throw CommandError(
          {ErrorCode::kInvalidArgument,
           "no PROMPT, and standard input is neither a terminal nor text"});
    }
    return absent ? std::nullopt : std::optional(options.prompt);
  }
  std::string piped = read_text("-");
  if (options.prompt.empty()) {
    return piped;
  }
  return piped.empty() ? options.prompt : options.prompt + "\n\n" + piped;
}

int run(RunOptions options) {
  const std::optional<std::string> prompt = find_prompt(options);
  configure_threads(options.threads);
  const LanguageModel model =
      load_model(options.model, arithmetic(options.exact));
  if (!options.raw && !model.has_chat_template()) {
    say("sheave: the model has no chat template; completing text as it is "
        "(--raw says the same without this note)");
    options.raw = true;
  }
  if (options.raw && !options.system.empty()) {
    throw CommandError(
        {ErrorCode::kInvalidArgument,
         "--system needs a chat template, which is not in use"});
  }
  const std::optional<uint64_t> seed = choose_seed(options);
  options.generation.sampling.seed = seed.value_or(0);
  ChatSession session(
      model,
      cache_options(options.exact),
      options.generation,
      options.system,
      options.raw);
  if (prompt) {
    return answer_once(session, *prompt, options, seed);
  }
  if (options.json) {
    throw CommandError(
        {ErrorCode::kInvalidArgument, "--json needs a PROMPT or piped text"});
  }
  return chat(session, options, seed);
}

/// Like CLI::Range, but NaN is outside every range.
CLI::Validator number_range(double low, double high) {
  const std::string range = fmt::format("{:g} to {:g}", low, high);
  return CLI::Validator(
      [low, high, range](const std::string& text) {
        double value = 0;
        const bool number = CLI::detail::lexical_cast(text, value);
        return number && value >= low && value <= high
                   ? std::string()
                   : text + " is not a number from " + range;
      },
      range);
}

void add_generation_options(CLI::App& command, RunOptions& options) {
  GenerationOptions& generation = options.generation;
  SamplingParams& sampling = generation.sampling;
  command.add_option("--max-tokens", generation.max_tokens)
      ->description(
          "tokens to generate at most (default: to the context's end)")
      ->check(CLI::Range(1, 1 << 30));
  command.add_option("--temperature", sampling.temperature)
      ->description("0 takes the likeliest token each time (default 0)")
      ->check(number_range(0, 100));
  command.add_option("--top-p", sampling.top_p)
      ->description("smallest set of tokens of this probability (default 1)")
      ->check(number_range(1e-6, 1));
  command.add_option("--top-k", sampling.top_k)
      ->description("this many likeliest tokens (default 0: all)")
      ->check(CLI::Range(0, 1 << 30));
  command.add_option("--min-p", sampling.min_p)
      ->description("tokens at least this likely relative to the best")
      ->check(number_range(0, 1));
  command.add_option("--seed", options.seed)
      ->description("random seed (default: any; the statistics line says it)");
  command.add_option("--stop", generation.stop)
      ->description("end the answer before this text (repeatable)")
      ->allow_extra_args(false);
  command.add_flag("--ignore-eos", generation.ignore_eos)
      ->description("go on after the model's own end of the answer");
}

} // namespace

void add_run_command(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<RunOptions>();
  CLI::App* command =
      app.add_subcommand("run", "Answer a prompt, or chat when there is none");
  command->add_option("MODEL", options->model, kModelHelp)->required();
  command->add_option("PROMPT", options->prompt)
      ->description(
          "the prompt; piped text is appended, or is the prompt if absent");
  command->add_option("--system", options->system, "system message");
  command->add_flag("--raw", options->raw)
      ->description("complete the text as it is, without chat template");
  command->add_flag("--exact", options->exact)
      ->description("float32 throughout, keys and values included");
  command->add_flag("--json", options->json)
      ->description("print one JSON object instead of streaming");
  command->add_option("--threads", options->threads)
      ->description("kernel threads (default: the usable physical cores)")
      ->check(CLI::Range(1, 1024));
  add_generation_options(*command, *options);
  command->footer(
      "Text goes to standard output, everything else to standard error.\n"
      "  sheave run smollm2 \"Why does the moon have phases?\"\n"
      "  git diff | sheave run smollm2 \"Summarize this change:\"\n"
      "  sheave run smollm2");
  command->callback([options, &exit_code] { exit_code = run(*options); });
}

} // namespace sheave
