// LineEditor: lines from a terminal, with arrow keys and history (libedit).
#pragma once

#include <memory>
#include <optional>
#include <string>

namespace sheave {

/// Prompts and echoes go to stderr. Ctrl-C drops the line and asks again; twice
/// on an empty line, or Ctrl-D there, ends the input.
class LineEditor {
 public:
  LineEditor();
  ~LineEditor();
  LineEditor(const LineEditor&) = delete;
  LineEditor& operator=(const LineEditor&) = delete;

  /// The next line without its newline; nothing at the end of the input.
  std::optional<std::string> read(const std::string& prompt);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

} // namespace sheave
