// The ranges that config values must lie in: far beyond any model, and small
// enough that no product of them overflows. Internal to the weights room.
#pragma once

#include <string>

namespace sheave {

struct IntegerRange {
  int low;
  int high;
};

struct NumberRange {
  double low;
  double high;
};

constexpr IntegerRange kVocabulary = {1, 1 << 24};
constexpr IntegerRange kWidth = {1, 1 << 20};
constexpr IntegerRange kLayers = {1, 4096};
constexpr IntegerRange kHeads = {1, 4096};
constexpr IntegerRange kHeadDim = {2, 512};
constexpr IntegerRange kContext = {1, 1 << 28};
constexpr NumberRange kEpsilon = {1e-20, 1};
constexpr NumberRange kRopeTheta = {1, 1e15};
constexpr NumberRange kRopeFactor = {1e-6, 1e9};
constexpr NumberRange kFraction = {1e-6, 1};

/// "an integer from 1 to 4096"
std::string range_text(IntegerRange range);
std::string range_text(NumberRange range);

} // namespace sheave
