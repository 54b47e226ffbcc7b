#include <mlx/ops.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>
#include <vector>

#include "sheave/kernels/quantized_linear/optional_input.h"
#include "sheave/kernels/quantized_linear/packed_product.h"
#include "sheave/kernels/quantized_linear/quantized_checks.h"
#include "sheave/kernels/quantized_linear/quantized_linear.h"
#include "sheave/kernels/quantized_linear/quantized_reference.h"
#include "sheave/kernels/rope/rotate_heads.h"
#include "sheave/kernels/runtime.h"

namespace sheave::kernels {
namespace {

constexpr int kHeadRows = 8; // tokens per task

/// Inputs: x, table, then those of the norms and biases that are inputs.
/// Outputs: queries, keys, values.
class QuantizedQKVPrimitive : public CpuPrimitive {
 public:
  QuantizedQKVPrimitive(
      const QKVProjections& p,
      const std::optional<NormWeight>& norm,
      std::vector<mx::array>& inputs)
      : weights_{p.q_proj, p.k_proj, p.v_proj},
        norm_(weight_of(norm), inputs),
        head_norms_{
            OptionalInput(weight_of(p.q_norm), inputs),
            OptionalInput(weight_of(p.k_norm), inputs)},
        biases_{
            OptionalInput(p.biases[0], inputs),
            OptionalInput(p.biases[1], inputs),
            OptionalInput(p.biases[2], inputs)},
        eps_(eps_of(norm)),
        head_eps_{eps_of(p.q_norm), eps_of(p.k_norm)},
        head_dim_(p.head_dim),
        pairs_(p.rope_pairs) {}

  DEFINE_NAME(SheaveQuantizedQKV)

 protected:
  ScratchSize scratch_size(
      const std::vector<mx::array>& inputs) const override {
    ScratchSize size =
        product_scratch(inputs[0].shape(0), inputs[0].shape(1), weights_);
    size.per_worker = std::max(size.per_worker, static_cast<size_t>(head_dim_));
    return size;
  }

  void run_all(
      const std::vector<mx::array>& inputs,
      std::vector<mx::array>& outputs,
      const Scratch& scratch) const override {
    const int m = inputs[0].shape(0);
    const PreparedInput input = prepare_input(
        {.x = inputs[0].data<float>(),
         .m = m,
         .k = inputs[0].shape(1),
         .norm_weight = norm_.data(inputs),
         .eps = eps_},
        weights_,
        scratch);
    std::array<ProductOutput, 3> products = {};
    for (size_t i = 0; i < 3; ++i) {
      products[i] = {
          .weight = &weights_[i],
          .out = outputs[i].data<float>(),
          .bias = biases_[i].data(inputs),
          .residual = nullptr};
    }
    multiply(input, products, scratch);
    thread_pool().run(
        (m + kHeadRows - 1) / kHeadRows,
        [&](int task, int worker) {
          const int end = std::min(m, (task + 1) * kHeadRows);
          for (int token = task * kHeadRows; token < end; ++token) {
            finish_token(inputs, outputs, token, scratch.worker(worker));
          }
        });
  }

 private:
  /// Norms and rotates a token's queries and keys, in place.
  void finish_token(
      const std::vector<mx::array>& inputs,
      std::vector<mx::array>& outputs,
      int token,
      float* normed) const {
    const mx::array& table = inputs[1];
    const auto t = static_cast<size_t>(token);
    const auto width = static_cast<size_t>(table.shape(1));
    for (size_t i = 0; i < 2; ++i) {
      const int heads = weights_[i].out_features / head_dim_;
      float* x = outputs[i].data<float>() +
                 t * static_cast<size_t>(weights_[i].out_features);
      if (const float* weight = head_norms_[i].data(inputs)) {
        norm_heads(x, heads, weight, head_eps_[i], normed);
      }
      rotate_heads(
          {.heads = heads,
           .head_dim = head_dim_,
           .num_pairs = static_cast<int>(width / 2),
           .pairs = pairs_},
          table.data<float>() + t * width,
          x);
    }
  }

  void norm_heads(
      float* x,
      int heads,
      const float* weight,
      float eps,
      float* normed) const {
    const auto dims = static_cast<size_t>(head_dim_);
    for (int head = 0; head < heads; ++head) {
      kernel_table().rms_norm(x, weight, eps, head_dim_, normed);
      std::memcpy(x, normed, dims * sizeof(float));
      x += dims;
    }
  }

  std::array<PackedWeight, 3> weights_;
  OptionalInput norm_;
  std::array<OptionalInput, 2> head_norms_;
  std::array<OptionalInput, 3> biases_;
  float eps_;
  std::array<float, 2> head_eps_;
  int head_dim_;
  RopePairs pairs_;
};

} // namespace

std::array<mx::array, 3> quantized_qkv(
    const mx::array& x,
    const QKVProjections& projections,
    const mx::array& table,
    const std::optional<NormWeight>& norm) {
  const auto& p = projections;
  check_product("quantized_qkv", x, p.q_proj);
  check_product("quantized_qkv", x, p.k_proj);
  check_product("quantized_qkv", x, p.v_proj);
  check_norm("quantized_qkv", norm, p.q_proj.layout.in_features);
  check_qkv(p, table);
  if (use_reference()) {
    return quantized_qkv_reference(x, p, table, norm);
  }
  std::vector<mx::array> inputs = {
      contiguous_input(x),
      contiguous_input(table)};
  auto primitive = std::make_shared<QuantizedQKVPrimitive>(p, norm, inputs);
  std::vector<mx::Shape> shapes;
  for (const PackedWeight* weight : {&p.q_proj, &p.k_proj, &p.v_proj}) {
    shapes.push_back(
        {x.shape(0), weight->out_features / p.head_dim, p.head_dim});
  }
  const std::vector<mx::Dtype> dtypes(3, mx::float32);
  auto outputs =
      mx::array::make_arrays(std::move(shapes), dtypes, primitive, inputs);
  return {outputs[0], outputs[1], outputs[2]};
}

} // namespace sheave::kernels
