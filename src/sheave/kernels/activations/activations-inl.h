// Gated activations, element by element.

/// x * sigmoid(z)
SHEAVE_KERNEL_INLINE VF times_sigmoid(VF x, VF z) {
  return x / (splat(1.0F) + exp_lanes(-z));
}

SHEAVE_KERNEL_INLINE VF silu_lanes(VF x) {
  return times_sigmoid(x, x);
}

/// The tanh form of GELU: (1 + tanh(u)) / 2 is sigmoid(2 u).
SHEAVE_KERNEL_INLINE VF gelu_tanh_lanes(VF x) {
  const VF cubed = x * x * x;
  const VF inner = fmadd(cubed, splat(0.044715F), x);
  return times_sigmoid(x, inner * splat(1.5957691216F)); // 2 sqrt(2 / pi)
}

/// out[i] = activation(gate[i]) * up[i]
template <typename Activation>
SHEAVE_KERNEL_INLINE void gated(
    const float* gate,
    const float* up,
    int n,
    float* out,
    Activation activation) {
  int i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    store(out + i, activation(load(gate + i)) * load(up + i));
  }
  if (i < n) {
    float tail[kLanes] = {};
    for (int j = 0; i + j < n; ++j) {
      tail[j] = gate[i + j];
    }
    store(tail, activation(load(tail)));
    for (int j = 0; i + j < n; ++j) {
      out[i + j] = tail[j] * up[i + j];
    }
  }
}

void swiglu(const float* gate, const float* up, int n, float* out) {
  gated(gate, up, n, out, silu_lanes);
}

void geglu_tanh(const float* gate, const float* up, int n, float* out) {
  gated(gate, up, n, out, gelu_tanh_lanes);
}
