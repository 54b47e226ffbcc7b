// The quantized products composed of MLX's operations: activations are rounded
// as the kernels round them, the rest is float32. Internal to the kernels
// room.
#pragma once

#include "sheave/kernels/quantized_linear/quantized_linear.h"

namespace sheave::kernels {

/// As the functions without _reference, whose checks have passed.
mx::array quantized_linear_reference(
    const mx::array& x,
    const PackedWeight& weight,
    const QuantizedLinearOptions& options);

mx::array quantized_gated_reference(
    const mx::array& x,
    const PackedWeight& gate,
    const PackedWeight& up,
    GateKind kind,
    const std::optional<NormWeight>& norm);

std::array<mx::array, 3> quantized_qkv_reference(
    const mx::array& x,
    const QKVProjections& projections,
    const mx::array& table,
    const std::optional<NormWeight>& norm);

mx::array quantized_tail_reference(
    const mx::array& attended,
    const mx::array& residual,
    const LayerTail& tail);

} // namespace sheave::kernels
