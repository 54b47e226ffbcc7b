// All kernels of one target; included once per target (see targets.h). The
// order matters: later files use earlier ones.

// clang-format off
#include "sheave/kernels/targets/simd-inl.h"
#include "sheave/kernels/linear/decode-inl.h"
#include "sheave/kernels/linear/linear-inl.h"
#include "sheave/kernels/activations/activations-inl.h"
#include "sheave/kernels/attention/attention-inl.h"
#include "sheave/kernels/rms_norm/rms_norm-inl.h"
// clang-format on
