#include "sheave/nn/linear.h"

#include <mlx/ops.h>

#include <utility>

#include "sheave/kernels/embedding/embedding.h"
#include "sheave/kernels/linear/linear.h"
#include "sheave/kernels/quantized_linear/quantized_linear.h"

namespace sheave {
namespace {

std::optional<kernels::NormWeight> norm_of(const RMSNorm* norm) {
  return norm == nullptr ? std::nullopt : std::optional(norm->weight());
}

mx::array normed(const mx::array& x, const RMSNorm* norm) {
  return norm == nullptr ? x : (*norm)(x);
}

LinearWeight head_weight(
    const kernels::Weight& table,
    std::optional<kernels::PackedWeight> head) {
  if (head) {
    return std::move(*head);
  }
  return table;
}

} // namespace

Linear::Linear(LinearWeight weight, std::optional<mx::array> bias)
    : weight_(std::move(weight)), bias_(std::move(bias)) {}

mx::array Linear::operator()(const mx::array& x, const LinearFusion& fusion)
    const {
  const mx::array* residual = fusion.residual;
  if (const kernels::PackedWeight* weight = packed()) {
    return kernels::quantized_linear(
        x,
        *weight,
        {.norm = norm_of(fusion.norm),
         .bias = bias_,
         .output_norm = norm_of(fusion.output_norm),
         .residual =
             residual == nullptr ? std::nullopt : std::optional(*residual)});
  }
  const mx::array product = kernels::linear(
      normed(x, fusion.norm),
      std::get<kernels::Weight>(weight_),
      bias_);
  const mx::array y = normed(product, fusion.output_norm);
  return residual == nullptr ? y : mx::add(y, *residual);
}

Embedding::Embedding(
    kernels::Weight table,
    std::optional<kernels::PackedWeight> head)
    : table_(std::move(table)), head_(head_weight(table_, std::move(head))) {}

mx::array Embedding::operator()(const mx::array& ids) const {
  return kernels::embedding(table_, ids);
}

} // namespace sheave
