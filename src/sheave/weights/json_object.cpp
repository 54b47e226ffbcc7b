#include "sheave/weights/json_object.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>
#include <vector>

#include "sheave/base/file_error.h"
#include "sheave/weights/tensor_info.h"

namespace sheave {
namespace {

using Json = nlohmann::json;

/// How deep the text's objects and lists nest, strings left out.
int nesting_depth(std::string_view text) {
  int depth = 0;
  int deepest = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string && c == '\\') {
      ++i; // whatever it escapes
    } else if (c == '"') {
      in_string = !in_string;
    } else if (!in_string) {
      depth += c == '{' || c == '[' ? 1 : c == '}' || c == ']' ? -1 : 0;
      deepest = std::max(deepest, depth);
    }
  }
  return deepest;
}

/// The parsed text; `repeated` becomes the last key that an object repeats.
Json parse_watching_keys(std::string_view text, std::string& repeated) {
  std::vector<std::set<std::string>> keys;
  const auto watch = [&](int, Json::parse_event_t event, Json& parsed) {
    if (event == Json::parse_event_t::object_start) {
      keys.emplace_back();
    } else if (event == Json::parse_event_t::object_end) {
      keys.pop_back();
    } else if (event == Json::parse_event_t::key) {
      if (!keys.back().insert(parsed.get<std::string>()).second) {
        repeated = parsed.get<std::string>();
      }
    }
    return true;
  };
  return Json::parse(text, watch);
}

} // namespace

Json parse_json_object(
    std::string_view text,
    const std::string& where,
    RepeatedKeys repeated) {
  constexpr int kMaxDepth = 64; // writing values out recurses
  if (nesting_depth(text) > kMaxDepth) {
    throw FileError(
        where + ": nests deeper than " + std::to_string(kMaxDepth) +
        " levels, expected fewer");
  }
  Json json;
  std::string repeated_key;
  try {
    json = repeated == RepeatedKeys::kRefuse
               ? parse_watching_keys(text, repeated_key)
               : Json::parse(text);
  } catch (const Json::parse_error& error) {
    throw FileError(
        where + ": is not valid JSON at byte " + std::to_string(error.byte) +
        ", expected an object");
  } catch (const Json::exception&) { // a number beyond double
    throw FileError(where + ": has a JSON number that is out of range");
  }
  if (!json.is_object()) {
    throw FileError(
        where + ": is " + short_dump(json) + ", expected a JSON object");
  }
  if (!repeated_key.empty()) {
    throw FileError(
        where + ": has the key " + printable(repeated_key) +
        " twice, expected it once");
  }
  return json;
}

std::string short_dump(const Json& value) {
  if (value.is_structured()) {
    const auto size = std::to_string(value.size());
    return value.is_array() ? "a list of " + size : "an object of " + size;
  }
  return printable(value.dump());
}

JsonObject::JsonObject(const Json& object, std::string where)
    : object_(object), where_(std::move(where)) {}

void JsonObject::fail(const std::string& key, const std::string& expected)
    const {
  const auto found = object_.find(key);
  throw FileError(
      where_ + ": key " + printable(key) + " is " +
      (found == object_.end() ? "missing" : short_dump(*found)) +
      ", expected " + expected);
}

const Json* JsonObject::find(const std::string& key) const {
  const auto found = object_.find(key);
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

bool JsonObject::is_null(const std::string& key) const {
  const auto found = object_.find(key);
  return found != object_.end() && found->is_null();
}

std::optional<int> JsonObject::integer(
    const std::string& key,
    IntegerRange range) const {
  const Json* value = find(key);
  if (value == nullptr) {
    return std::nullopt;
  }
  const double number = value->is_number() ? value->get<double>() : NAN;
  // Written so that NaN fails. 4096.0 is an integer to JSON.
  if (!(number >= range.low && number <= range.high) ||
      number != std::trunc(number)) {
    fail(key, range_text(range));
  }
  return static_cast<int>(number);
}

std::optional<double> JsonObject::number(
    const std::string& key,
    NumberRange range) const {
  const Json* value = find(key);
  if (value == nullptr) {
    return std::nullopt;
  }
  const bool fits = value->is_number() && value->get<double>() >= range.low &&
                    value->get<double>() <= range.high;
  if (!fits) {
    fail(key, range_text(range));
  }
  return value->get<double>();
}

std::optional<bool> JsonObject::boolean(const std::string& key) const {
  const Json* value = find(key);
  if (value != nullptr && !value->is_boolean()) {
    fail(key, "true or false");
  }
  return value == nullptr ? std::nullopt : std::optional(value->get<bool>());
}

std::optional<std::string> JsonObject::string(const std::string& key) const {
  const Json* value = find(key);
  if (value != nullptr && !value->is_string()) {
    fail(key, "a string");
  }
  return value == nullptr ? std::nullopt
                          : std::optional(value->get<std::string>());
}

std::optional<JsonObject> JsonObject::object(const std::string& key) const {
  const Json* value = find(key);
  if (value == nullptr) {
    return std::nullopt;
  }
  if (!value->is_object()) {
    fail(key, "an object");
  }
  return JsonObject(*value, where_ + ": " + printable(key));
}

} // namespace sheave
