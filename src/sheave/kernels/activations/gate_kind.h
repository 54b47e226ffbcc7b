// GateKind: what the gate of a feed-forward layer passes through. No MLX: raw
// kernels and operations name it alike.
#pragma once

namespace sheave::kernels {

enum class GateKind { kSwiglu, kGegluTanh };

} // namespace sheave::kernels
