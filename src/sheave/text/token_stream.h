// Turns generated ids into text as they come. Nothing that was given out is
// ever taken back, so incomplete characters and possible beginnings of a stop
// string wait until it is known what they are.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sheave {

class Tokenizer;

struct TokenStreamOptions {
  bool skip_special = true;
  /// Generation ends at the first of these to appear; empty ones are ignored.
  std::vector<std::string> stop_strings;
};

/// One generation's text. `push` each id, then `finish` once.
class TokenStream {
 public:
  /// `tokenizer` must outlive the stream.
  explicit TokenStream(
      const Tokenizer& tokenizer,
      TokenStreamOptions options = {});

  /// Takes one id, returns the text that is now certain (possibly ""), whole
  /// UTF-8 characters only. Bytes that can't be UTF-8 come as U+FFFD, one for
  /// each maximal part of a character. After a stop string: always "".
  std::string push(int32_t id);

  /// No more ids will come: returns what was held back.
  std::string finish();

  /// True once a stop string has appeared. It and what follows it aren't
  /// given out.
  [[nodiscard]] bool stopped() const {
    return stopped_at_ != kNone;
  }

  /// Which of stop_strings it was; only if stopped().
  [[nodiscard]] const std::string& stop_string() const;

 private:
  static constexpr size_t kNone = static_cast<size_t>(-1);

  std::string release(const std::string& text, bool final);

  const Tokenizer* tokenizer_;
  TokenStreamOptions options_;
  std::string bytes_; // the beginning of a character
  std::string held_;  // valid text that may begin a stop string
  bool strip_space_;  // no byte was seen yet, and a first space is dropped
  size_t stopped_at_ = kNone;
};

/// Moves the decoded front of `bytes` to the result, leaving at most three
/// bytes: the beginning of a character that more bytes could complete. With
/// `final` nothing is left. Invalid bytes become U+FFFD.
std::string take_utf8(std::string& bytes, bool final);

} // namespace sheave
