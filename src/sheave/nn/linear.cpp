#include "sheave/nn/linear.h"

#include <utility>

#include "sheave/kernels/embedding/embedding.h"
#include "sheave/kernels/linear/linear.h"

namespace sheave {

Linear::Linear(kernels::Weight weight, std::optional<mx::array> bias)
    : weight_(std::move(weight)), bias_(std::move(bias)) {}

mx::array Linear::operator()(const mx::array& x) const {
  return kernels::linear(x, weight_, bias_);
}

Embedding::Embedding(kernels::Weight table) : table_(std::move(table)) {}

mx::array Embedding::operator()(const mx::array& ids) const {
  return kernels::embedding(table_, ids);
}

mx::array Embedding::as_linear(const mx::array& x) const {
  return kernels::linear(x, table_, std::nullopt);
}

} // namespace sheave
