// The product of packed rows with decoded weight rows. A dot product keeps
// kSumLanes running sums, element k in lane k mod kSumLanes, whatever the
// target and however many rows and weights are computed together.

/// Rows of x and of w per tile: as many sums as the registers hold.
#if SHEAVE_TARGET_LANES == 16
constexpr int kTileM = 6;
constexpr int kTileN = 4;
#elif SHEAVE_TARGET_LANES == 8
constexpr int kTileM = 3;
constexpr int kTileN = 2;
#else
constexpr int kTileM = 1;
constexpr int kTileN = 2;
#endif
static_assert(kLinearRows % kTileN == 0);

/// out[m, n] = x[m] . w[n] for M rows of x and N of w, each `stride` floats
/// apart, over k floats (a multiple of kSumLanes).
template <int M, int N>
SHEAVE_KERNEL_INLINE void dot_tile(
    const float* x,
    size_t x_stride,
    const float* w,
    size_t w_stride,
    int k,
    float (&out)[M][N]) {
  VF sums[M][N][kParts] = {};
  for (int i = 0; i < k; i += kSumLanes) {
    for (int part = 0; part < kParts; ++part) {
      VF weights[N];
      for (int n = 0; n < N; ++n) {
        weights[n] = load(w + n * w_stride + i + part * kLanes);
      }
      for (int m = 0; m < M; ++m) {
        const VF activation = load(x + m * x_stride + i + part * kLanes);
        for (int n = 0; n < N; ++n) {
          sums[m][n][part] = fmadd(activation, weights[n], sums[m][n][part]);
        }
      }
    }
  }
  for (int m = 0; m < M; ++m) {
    for (int n = 0; n < N; ++n) {
      out[m][n] = sum_lanes(sums[m][n]);
    }
  }
}

/// Where a tile's results go: out[m * out_stride + n], with a bias per n.
struct TileOutput {
  float* out;
  size_t out_stride;
  const float* bias;
};

template <int M, int N>
SHEAVE_KERNEL_INLINE void store_tile(
    const float* x,
    size_t x_stride,
    const float* w,
    size_t w_stride,
    int k,
    const TileOutput& to) {
  float tile[M][N];
  dot_tile<M, N>(x, x_stride, w, w_stride, k, tile);
  for (int m = 0; m < M; ++m) {
    for (int n = 0; n < N; ++n) {
      const float bias = to.bias == nullptr ? 0.0F : to.bias[n];
      to.out[m * to.out_stride + n] =
          to.bias == nullptr ? tile[m][n] : tile[m][n] + bias;
    }
  }
}

/// All m rows of x with N rows of w.
template <int N>
SHEAVE_KERNEL_INLINE void dot_rows(
    const float* x,
    size_t x_stride,
    int m,
    const float* w,
    size_t w_stride,
    int k,
    TileOutput to) {
  int row = 0;
  for (; row + kTileM <= m; row += kTileM) {
    store_tile<kTileM, N>(x + row * x_stride, x_stride, w, w_stride, k, to);
    to.out += kTileM * to.out_stride;
  }
  for (; row < m; ++row) {
    store_tile<1, N>(x + row * x_stride, x_stride, w, w_stride, k, to);
    to.out += to.out_stride;
  }
}

void linear(const LinearTask& task) {
  const int k = task.weight.in_features;
  const int width = padded(k);
  const auto stride = static_cast<size_t>(width);
  for (int row = 0; row < kLinearRows; ++row) {
    for (int i = k; i < width; ++i) {
      task.scratch[row * stride + i] = 0.0F;
    }
  }
  for (int n = task.n_begin; n < task.n_end; n += kLinearRows) {
    const int rows =
        n + kLinearRows <= task.n_end ? kLinearRows : task.n_end - n;
    for (int row = 0; row < rows; ++row) {
      decode_row(task.weight, n + row, task.scratch + row * stride);
    }
    for (int row = 0; row < rows;) {
      const int tile = rows - row >= kTileN ? kTileN : 1;
      const float* w = task.scratch + row * stride;
      const TileOutput to = {
          task.out + n + row,
          static_cast<size_t>(task.n),
          task.bias == nullptr ? nullptr : task.bias + n + row};
      if (tile == kTileN) {
        dot_rows<kTileN>(task.x, stride, task.m, w, stride, width, to);
      } else {
        dot_rows<1>(task.x, stride, task.m, w, stride, width, to);
      }
      row += tile;
    }
  }
}
