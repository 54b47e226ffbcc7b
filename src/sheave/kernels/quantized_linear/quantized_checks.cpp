#include "sheave/kernels/quantized_linear/quantized_checks.h"

#include "sheave/kernels/fail_check.h"

namespace sheave::kernels {

void check_product(
    const char* op,
    const mx::array& x,
    const PackedWeight& weight) {
  const int columns = weight.layout.in_features;
  if (x.ndim() != 2 || x.shape(1) != columns) {
    fail_check(op, "expected x [T, ", columns, "], got ", x.shape());
  }
}

void check_vector(
    const char* op,
    const std::optional<mx::array>& vector,
    int size) {
  if (vector && vector->shape() != mx::Shape{size}) {
    fail_check(op, "expected a vector [", size, "], got ", vector->shape());
  }
}

void check_norm(
    const char* op,
    const std::optional<NormWeight>& norm,
    int size) {
  if (norm) {
    check_vector(op, norm->weight, size);
  }
}

void check_residual(
    const char* op,
    const std::optional<mx::array>& residual,
    const mx::array& x,
    const PackedWeight& weight) {
  const mx::Shape expected = {x.shape(0), weight.out_features};
  if (residual && residual->shape() != expected) {
    fail_check(
        op,
        "expected a residual ",
        expected,
        ", got ",
        residual->shape());
  }
}

void check_same_rows(
    const char* op,
    const PackedWeight& a,
    const PackedWeight& b) {
  if (a.out_features != b.out_features) {
    fail_check(
        op,
        "expected weights of as many rows, got ",
        a.out_features,
        " and ",
        b.out_features);
  }
}

void check_tail(
    const mx::array& attended,
    const mx::array& residual,
    const LayerTail& tail) {
  const char* op = "quantized_tail";
  const int hidden = tail.o_proj.out_features;
  const int inner = tail.gate_proj.out_features;
  check_product(op, attended, tail.o_proj);
  check_residual(op, residual, attended, tail.o_proj);
  check_same_rows(op, tail.gate_proj, tail.up_proj);
  check_same_rows(op, tail.o_proj, tail.down_proj);
  if (tail.gate_proj.layout.in_features != hidden ||
      tail.up_proj.layout.in_features != hidden ||
      tail.down_proj.layout.in_features != inner) {
    fail_check(op, "weights don't follow each other");
  }
  check_vector(op, tail.o_bias, hidden);
  check_vector(op, tail.down_bias, hidden);
  check_norm(op, tail.attention_output_norm, hidden);
  check_norm(op, tail.mlp_norm, hidden);
  check_norm(op, tail.mlp_output_norm, hidden);
}

void check_qkv(const QKVProjections& projections, const mx::array& table) {
  const auto& p = projections;
  const char* op = "quantized_qkv";
  const PackedWeight* weights[] = {&p.q_proj, &p.k_proj, &p.v_proj};
  for (size_t i = 0; i < 3; ++i) {
    if (p.head_dim <= 0 || weights[i]->out_features % p.head_dim != 0) {
      fail_check(
          op,
          weights[i]->out_features,
          " rows aren't whole heads of ",
          p.head_dim);
    }
    check_vector(op, p.biases[i], weights[i]->out_features);
  }
  check_norm(op, p.q_norm, p.head_dim);
  check_norm(op, p.k_norm, p.head_dim);
  if (table.ndim() != 2 || table.shape(1) % 2 != 0 ||
      table.shape(1) > p.head_dim) {
    fail_check(
        op,
        "expected a table [T, 2 P] of at most ",
        p.head_dim,
        " columns, got ",
        table.shape());
  }
}

} // namespace sheave::kernels
