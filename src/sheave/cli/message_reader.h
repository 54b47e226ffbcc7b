// Reads what a user types in a chat: one line, or several.
#pragma once

#include <functional>
#include <optional>
#include <string>

namespace sheave {

/// One message from lines. A line that begins with """ opens a message that
/// goes on until a line that ends with """; a line that ends with a backslash
/// goes on with the next.
class MessageReader {
 public:
  /// Reads a line without its newline, showing the prompt; nothing at the end
  /// of input.
  using ReadLine =
      std::function<std::optional<std::string>(const std::string& prompt)>;

  explicit MessageReader(ReadLine read_line);

  /// The next message; nothing when the input ends before one begins. What was
  /// typed of an unfinished message is returned when the input ends.
  std::optional<std::string> read();

 private:
  std::string read_block(std::string text);
  std::string read_continued(std::string line);

  ReadLine read_line_;
};

} // namespace sheave
