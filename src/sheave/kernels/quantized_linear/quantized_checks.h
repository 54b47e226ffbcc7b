// Shape checks of the quantized products. Internal to the kernels room; each
// throws std::invalid_argument, its message beginning with [op].
#pragma once

#include "sheave/kernels/quantized_linear/quantized_linear.h"

namespace sheave::kernels {

void check_product(
    const char* op,
    const mx::array& x,
    const PackedWeight& weight);
void check_vector(
    const char* op,
    const std::optional<mx::array>& vector,
    int size);
void check_norm(
    const char* op,
    const std::optional<NormWeight>& norm,
    int size);
void check_residual(
    const char* op,
    const std::optional<mx::array>& residual,
    const mx::array& x,
    const PackedWeight& weight);
void check_same_rows(
    const char* op,
    const PackedWeight& a,
    const PackedWeight& b);
void check_tail(
    const mx::array& attended,
    const mx::array& residual,
    const LayerTail& tail);
void check_qkv(const QKVProjections& projections, const mx::array& table);

} // namespace sheave::kernels
