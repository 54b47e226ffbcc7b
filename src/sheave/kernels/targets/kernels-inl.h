// All kernels of one target; included once per target (see targets.h). The
// order matters: later files use earlier ones.

// clang-format off
#include "sheave/kernels/targets/simd-inl.h"
#include "sheave/kernels/linear/decode-inl.h"
#include "sheave/kernels/linear/linear-inl.h"
#include "sheave/kernels/quantized_linear/quantize-inl.h"
#include "sheave/kernels/quantized_linear/panel_scales-inl.h"
#if SHEAVE_TARGET_LANES == 16
#include "sheave/kernels/quantized_linear/panel_tile_avx512-inl.h"
#elif SHEAVE_TARGET_LANES == 8
#include "sheave/kernels/quantized_linear/panel_tile_avx2-inl.h"
#else
#include "sheave/kernels/quantized_linear/panel_tile_base-inl.h"
#endif
#include "sheave/kernels/quantized_linear/packed_linear-inl.h"
#include "sheave/kernels/activations/activations-inl.h"
#include "sheave/kernels/attention/planes-inl.h"
#include "sheave/kernels/attention/scores-inl.h"
#include "sheave/kernels/attention/softmax-inl.h"
#include "sheave/kernels/attention/values-inl.h"
#include "sheave/kernels/attention/attention-inl.h"
#include "sheave/kernels/rms_norm/rms_norm-inl.h"
#include "sheave/kernels/kv_store/kv_store-inl.h"
#include "sheave/kernels/logits/logits-inl.h"
// clang-format on
