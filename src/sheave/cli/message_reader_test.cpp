#include "sheave/cli/message_reader.h"

#include <gtest/gtest.h>

#include <vector>

namespace sheave {
namespace {

/// All messages that come of some lines.
std::vector<std::string> messages(const std::vector<std::string>& lines) {
  size_t next = 0;
  MessageReader reader([&](const std::string&) -> std::optional<std::string> {
    return next < lines.size() ? std::optional(lines[next++]) : std::nullopt;
  });
  std::vector<std::string> result;
  while (const auto message = reader.read()) {
    result.push_back(*message);
  }
  return result;
}

using Lines = std::vector<std::string>;

TEST(MessageReader, TakesALineAsAMessage) {
  EXPECT_EQ(messages({"a", "", "b"}), (Lines{"a", "", "b"}));
  EXPECT_EQ(messages({}), Lines{});
}

TEST(MessageReader, JoinsLinesBetweenTripleQuotes) {
  EXPECT_EQ(
      messages({"\"\"\"a", "b", "c\"\"\"", "d"}),
      (Lines{"a\nb\nc", "d"}));
  EXPECT_EQ(messages({"\"\"\"", "a", "", "b", "\"\"\""}), (Lines{"a\n\nb"}));
  EXPECT_EQ(messages({"\"\"\"one line\"\"\""}), (Lines{"one line"}));
}

TEST(MessageReader, GoesOnAfterABackslash) {
  EXPECT_EQ(messages({"a\\", "b\\", "c", "d"}), (Lines{"a\nb\nc", "d"}));
}

TEST(MessageReader, ReturnsWhatWasTypedWhenTheInputEnds) {
  EXPECT_EQ(messages({"\"\"\"a", "b"}), (Lines{"a\nb"}));
  EXPECT_EQ(messages({"a\\"}), (Lines{"a"}));
}

} // namespace
} // namespace sheave
