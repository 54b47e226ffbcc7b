#include "sheave/text/token_stream.h"

#include <algorithm>
#include <utility>

#include "sheave/base/check.h"
#include "sheave/text/tokenizer.h"

namespace sheave {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

/// The front of a byte string, read as one character.
struct FrontCharacter {
  enum class Kind { kValid, kInvalid, kIncomplete } kind;
  size_t length; // bytes that it takes up
};

/// What a lead byte asks for: how many bytes follow, and which second bytes
/// are allowed (Unicode, table 3-7).
struct LeadByte {
  size_t following;
  uint8_t low = 0x80;
  uint8_t high = 0xBF;
};

LeadByte lead_byte(uint8_t byte) {
  if (byte >= 0xC2 && byte <= 0xDF) {
    return {1};
  }
  if (byte >= 0xE0 && byte <= 0xEF) {
    const uint8_t low = byte == 0xE0 ? 0xA0 : 0x80;
    const uint8_t high = byte == 0xED ? 0x9F : 0xBF;
    return {2, low, high};
  }
  if (byte >= 0xF0 && byte <= 0xF4) {
    const uint8_t low = byte == 0xF0 ? 0x90 : 0x80;
    const uint8_t high = byte == 0xF4 ? 0x8F : 0xBF;
    return {3, low, high};
  }
  return {0};
}

FrontCharacter front_character(std::string_view bytes) {
  using Kind = FrontCharacter::Kind;
  const auto first = static_cast<uint8_t>(bytes[0]);
  if (first < 0x80) {
    return {Kind::kValid, 1};
  }
  LeadByte lead = lead_byte(first);
  if (lead.following == 0) {
    return {Kind::kInvalid, 1};
  }
  for (size_t i = 1; i <= lead.following; ++i) {
    if (i == bytes.size()) {
      return {Kind::kIncomplete, i};
    }
    const auto byte = static_cast<uint8_t>(bytes[i]);
    if (byte < lead.low || byte > lead.high) {
      return {Kind::kInvalid, i};
    }
    lead.low = 0x80;
    lead.high = 0xBF;
  }
  return {Kind::kValid, lead.following + 1};
}

/// How much of the end of `text` is a proper beginning of `stop`.
size_t held_length(std::string_view text, std::string_view stop) {
  size_t length = std::min(text.size(), stop.size() - 1);
  while (length > 0 && !text.ends_with(stop.substr(0, length))) {
    --length;
  }
  return length;
}

} // namespace

std::string take_utf8(std::string& bytes, bool final) {
  std::string text;
  std::string_view rest = bytes;
  while (!rest.empty()) {
    const FrontCharacter front = front_character(rest);
    if (front.kind == FrontCharacter::Kind::kIncomplete && !final) {
      break;
    }
    const bool valid = front.kind == FrontCharacter::Kind::kValid;
    text += valid ? rest.substr(0, front.length) : kReplacement;
    rest.remove_prefix(front.length);
  }
  bytes.erase(0, bytes.size() - rest.size());
  return text;
}

TokenStream::TokenStream(const Tokenizer& tokenizer, TokenStreamOptions options)
    : tokenizer_(&tokenizer),
      options_(std::move(options)),
      strip_space_(tokenizer.strips_leading_space()) {
  std::erase_if(options_.stop_strings, [](const std::string& stop) {
    return stop.empty();
  });
}

std::string TokenStream::push(int32_t id) {
  if (stopped() || (options_.skip_special && tokenizer_->is_special(id))) {
    return {};
  }
  std::string_view piece = tokenizer_->token_bytes(id);
  if (piece.empty()) {
    return {};
  }
  if (strip_space_) {
    strip_space_ = false;
    piece.remove_prefix(piece.front() == ' ' ? 1 : 0);
  }
  bytes_ += piece;
  return release(take_utf8(bytes_, /*final=*/false), /*final=*/false);
}

std::string TokenStream::finish() {
  if (stopped()) {
    return {};
  }
  return release(take_utf8(bytes_, /*final=*/true), /*final=*/true);
}

const std::string& TokenStream::stop_string() const {
  SHEAVE_CHECK(stopped(), "no stop string has appeared");
  return options_.stop_strings[stopped_at_];
}

/// Gives out what can't be part of a stop string any more.
std::string TokenStream::release(const std::string& text, bool final) {
  held_ += text;
  size_t found_at = std::string::npos;
  size_t keep = 0;
  for (size_t i = 0; i < options_.stop_strings.size(); ++i) {
    const std::string& stop = options_.stop_strings[i];
    const size_t at = held_.find(stop);
    if (at < found_at) {
      found_at = at;
      stopped_at_ = i;
    }
    keep = std::max(keep, held_length(held_, stop));
  }
  if (stopped()) {
    held_.resize(found_at);
    return std::exchange(held_, {});
  }
  const size_t given = held_.size() - (final ? 0 : keep);
  std::string out = held_.substr(0, given);
  held_.erase(0, given);
  return out;
}

} // namespace sheave
