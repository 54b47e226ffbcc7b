// The product of quantized tokens with panels of a packed weight. A result is
// a sum over groups of columns in ascending order, each an exact integer times
// scales: its bits depend on its own token and row alone.

/// Adds bias and residual and writes a tile's 16 rows, or as many as there
/// are.
template <int M>
SHEAVE_KERNEL_INLINE void store_panel(
    const PackedTask& task,
    int panel,
    int token,
    const VF (&sums)[M][kParts]) {
  const int first = panel * kPanelRows;
  const int rows = task.n - first < kPanelRows ? task.n - first : kPanelRows;
  for (int m = 0; m < M; ++m) {
    const size_t at = static_cast<size_t>(token + m) * task.out_stride +
                      static_cast<size_t>(first);
    float values[kPanelRows];
    for (int part = 0; part < kParts; ++part) {
      store(values + part * kLanes, sums[m][part]);
    }
    if (rows < kPanelRows) {
      for (int n = 0; n < rows; ++n) {
        float value = values[n];
        value += task.bias != nullptr ? task.bias[first + n] : 0.0F;
        value += task.residual != nullptr ? task.residual[at + n] : 0.0F;
        task.out[at + n] = value;
      }
      continue;
    }
    for (int i = 0; i < kPanelRows; i += kLanes) {
      VF value = load(values + i);
      if (task.bias != nullptr) {
        value = value + load(task.bias + first + i);
      }
      if (task.residual != nullptr) {
        value = value + load(task.residual + at + i);
      }
      store(task.out + at + i, value);
    }
  }
}

template <int kBits, int M>
SHEAVE_KERNEL_INLINE void
multiply_tile(const PackedTask& task, int panel, int token) {
  VF sums[M][kParts] = {};
  multiply_panel<kBits, M>(
      task,
      task.panels + static_cast<size_t>(panel) * task.panel_bytes,
      token,
      sums);
  store_panel<M>(task, panel, token, sums);
}

/// The last tokens, fewer than a tile: 8, 4, 2, 1 at a time.
template <int kBits, int M>
SHEAVE_KERNEL_INLINE void
multiply_rest(const PackedTask& task, int panel, int token) {
  if constexpr (M >= 1) {
    if ((task.m_end - token) & M) {
      multiply_tile<kBits, M>(task, panel, token);
      token += M;
    }
    multiply_rest<kBits, M / 2>(task, panel, token);
  }
}

template <int kBits>
static void multiply_panels(const PackedTask& task) {
  for (int panel = task.panel_begin; panel < task.panel_end; ++panel) {
    int token = task.m_begin;
    for (; token + kTileTokens <= task.m_end; token += kTileTokens) {
      multiply_tile<kBits, kTileTokens>(task, panel, token);
    }
    multiply_rest<kBits, kTileTokens / 2>(task, panel, token);
  }
}

void packed_linear(const PackedTask& task) {
  switch (task.layout.bits) {
    case 2:
      return multiply_panels<2>(task);
    case 3:
      return multiply_panels<3>(task);
    case 4:
      return multiply_panels<4>(task);
    case 5:
      return multiply_panels<5>(task);
    case 6:
      return multiply_panels<6>(task);
    default:
      return multiply_panels<8>(task);
  }
}
