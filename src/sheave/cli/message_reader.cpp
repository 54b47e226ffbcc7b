#include "sheave/cli/message_reader.h"

#include <string_view>
#include <utility>

namespace sheave {
namespace {

constexpr std::string_view kQuotes = "\"\"\"";
constexpr const char* kPrompt = ">>> ";
constexpr const char* kMore = "... ";

bool take_closing_quotes(std::string& text) {
  if (!text.ends_with(kQuotes)) {
    return false;
  }
  text.resize(text.size() - kQuotes.size());
  return true;
}

} // namespace

MessageReader::MessageReader(ReadLine read_line)
    : read_line_(std::move(read_line)) {}

std::optional<std::string> MessageReader::read() {
  auto line = read_line_(kPrompt);
  if (!line) {
    return std::nullopt;
  }
  return line->starts_with(kQuotes) ? read_block(line->substr(kQuotes.size()))
                                    : read_continued(std::move(*line));
}

std::string MessageReader::read_block(std::string text) {
  while (!take_closing_quotes(text)) {
    const auto line = read_line_(kMore);
    if (!line) {
      break;
    }
    text += (text.empty() ? "" : "\n") + *line;
  }
  while (text.ends_with('\n')) { // the line before a closing """ of its own
    text.pop_back();
  }
  return text;
}

std::string MessageReader::read_continued(std::string line) {
  while (line.ends_with('\\')) {
    line.pop_back();
    const auto next = read_line_(kMore);
    if (!next) {
      break;
    }
    line += "\n" + *next;
  }
  return line;
}

} // namespace sheave
