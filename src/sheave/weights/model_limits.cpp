#include "sheave/weights/model_limits.h"

#include <sstream>

namespace sheave {

std::string range_text(IntegerRange range) {
  return "an integer from " + std::to_string(range.low) + " to " +
         std::to_string(range.high);
}

std::string range_text(NumberRange range) {
  std::ostringstream text;
  text << "a number from " << range.low << " to " << range.high;
  return text.str();
}

} // namespace sheave
