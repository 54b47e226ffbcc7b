// Gated activations, element by element.
#pragma once

#include <mlx/array.h>

#include "sheave/kernels/activations/gate_kind.h"

namespace sheave::kernels {

namespace mx = mlx::core;

/// silu(gate) * up. gate and up: one shape, any float dtype. Returns that
/// shape, float32, within 4 units in the last place of the exact product for
/// |gate| <= 80.
/// Throws std::invalid_argument if the shapes differ.
/// Source: Shazeer 2020.
mx::array swiglu(const mx::array& gate, const mx::array& up);

/// gelu(gate) * up with GELU's tanh form; otherwise as swiglu().
/// Source: Hendrycks & Gimpel 2016, section 2.
mx::array geglu_tanh(const mx::array& gate, const mx::array& up);

/// The one of both that `kind` names.
mx::array gated(GateKind kind, const mx::array& gate, const mx::array& up);

} // namespace sheave::kernels
