// The product of quantized tokens with panels of a packed weight. A result is
// a sum over groups of columns in ascending order, each an exact integer times
// scales: its bits depend on its own token and row alone.

/// Adds bias and residual and writes a tile's 16 rows, or as many as there
/// are, of the first `count` tokens.
template <int M>
SHEAVE_KERNEL_INLINE void store_panel(
    const PackedTask& task,
    int panel,
    int token,
    int count,
    const VF (&sums)[M][kParts]) {
  const int first = panel * kPanelRows;
  const int rows = task.n - first < kPanelRows ? task.n - first : kPanelRows;
  for (int m = 0; m < M && m < count; ++m) {
    const auto row = static_cast<size_t>(token - task.m_begin + m);
    const size_t at = row * task.out_stride + static_cast<size_t>(first);
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

/// M places of a tile from `place` on, of which those before `end` hold
/// tokens.
template <int kBits, int M>
SHEAVE_KERNEL_INLINE void multiply_places(
    const PackedTask& task,
    int panel,
    const PanelScales& scales,
    int tile,
    int place,
    int end) {
  VF sums[M][kParts] = {};
  multiply_panel<kBits, M>(
      task,
      task.panels + panel * task.panel_bytes + task.scale_bytes,
      view_tile(task, scales, tile, place),
      sums);
  const int token = tile * kTokenTile + place;
  store_panel<M>(task, panel, token, end - place, sums);
}

/// The places [place, end) of a tile, in pieces of M and fewer. A piece may
/// reach past the end: unpacking the weights again would cost more than a few
/// results that are dropped.
template <int kBits, int M>
SHEAVE_KERNEL_INLINE void multiply_tile(
    const PackedTask& task,
    int panel,
    const PanelScales& scales,
    int tile,
    int place,
    int end) {
  constexpr int kSpare = M / 4; // results that may be dropped
  for (; end - place >= M - kSpare; place += M) {
    multiply_places<kBits, M>(task, panel, scales, tile, place, end);
  }
  if constexpr (M > 1) {
    if (place < end) {
      multiply_tile<kBits, M / 2>(task, panel, scales, tile, place, end);
    }
  }
}

template <int kBits>
static void multiply_panels(const PackedTask& task) {
  for (int panel = task.panel_begin; panel < task.panel_end; ++panel) {
    const PanelScales scales =
        expand_scales(task, task.panels + panel * task.panel_bytes);
    for (int m = task.m_begin; m < task.m_end; m += kTokenTile) {
      const int left = task.m_end - m;
      multiply_tile<kBits, kTileTokens>(
          task,
          panel,
          scales,
          m / kTokenTile,
          0,
          left < kTokenTile ? left : kTokenTile);
    }
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
