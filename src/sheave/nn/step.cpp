#include "sheave/nn/step.h"

#include <utility>

namespace sheave {
namespace {

mx::array positions_array(const StepLayout& layout) {
  const auto positions = layout.positions();
  return mx::array(positions.begin(), {static_cast<int>(positions.size())});
}

} // namespace

Step::Step(StepLayout step_layout)
    : layout(std::move(step_layout)), positions(positions_array(layout)) {}

} // namespace sheave
