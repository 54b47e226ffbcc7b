// JsonObject: the values of one JSON object by key, each checked as it is
// taken. No MLX. Internal to the weights room.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "sheave/weights/model_limits.h"

namespace sheave {

enum class RepeatedKeys { kLastWins, kRefuse };

/// A JSON object from text. Throws FileError, its message beginning with
/// `where`, if the text is something else, nests deeper than 64 levels, or
/// repeats a key against `repeated`.
nlohmann::json parse_json_object(
    std::string_view text,
    const std::string& where,
    RepeatedKeys repeated = RepeatedKeys::kLastWins);

/// A value as it may stand in a one-line message.
std::string short_dump(const nlohmann::json& value);

/// A view: object and where must outlive it. Getters return nothing where the
/// key is absent or null, and throw FileError, naming the key, what was found
/// and what was expected, where it holds something else.
class JsonObject {
 public:
  JsonObject(const nlohmann::json& object, std::string where);

  [[noreturn]] void fail(const std::string& key, const std::string& expected)
      const;

  /// nullptr if absent or null.
  const nlohmann::json* find(const std::string& key) const;
  bool is_null(const std::string& key) const;

  std::optional<int> integer(const std::string& key, IntegerRange range) const;
  std::optional<double> number(const std::string& key, NumberRange range) const;
  std::optional<bool> boolean(const std::string& key) const;
  std::optional<std::string> string(const std::string& key) const;
  std::optional<JsonObject> object(const std::string& key) const;

  const nlohmann::json& json() const {
    return object_;
  }

 private:
  const nlohmann::json& object_;
  std::string where_;
};

} // namespace sheave
