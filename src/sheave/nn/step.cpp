#include "sheave/nn/step.h"

#include <utility>

namespace sheave {
namespace {

mx::array positions_array(const StepLayout& layout) {
  const auto positions = layout.positions();
  return mx::array(positions.begin(), {static_cast<int>(positions.size())});
}

} // namespace

Step::Step(StepLayout layout)
    : layout_(std::move(layout)), positions_(positions_array(layout_)) {}

const mx::array& Step::rope_table(const Rope& rope) const {
  for (const auto& [key, table] : tables_) {
    if (key == rope.key()) {
      return table;
    }
  }
  return tables_.emplace_back(rope.key(), rope.table(positions_)).second;
}

} // namespace sheave
