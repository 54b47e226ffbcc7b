// A token's logits are the same bits however its prompt was cut into chunks,
// beside whatever rows, on however many threads: whole models, with the
// arithmetic that users get.

#include <gtest/gtest.h>
#include <mlx/ops.h>
#include <mlx/transforms.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "sheave/engine/model_path.h"
#include "sheave/kernels/runtime.h"
#include "sheave/models/registry.h"
#include "sheave/weights/checkpoint.h"

namespace sheave {
namespace {

namespace fs = std::filesystem;

/// A row's tokens, and how many of them each step takes.
struct RowPlan {
  std::vector<int32_t> tokens;
  int chunk;
};

std::vector<int32_t>
random_tokens(const Model& model, int count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<int32_t> tokens;
  for (int i = 0; i < count; ++i) {
    tokens.push_back(static_cast<int32_t>(
        random() % static_cast<unsigned>(model.config().vocab_size)));
  }
  return tokens;
}

std::vector<float> values(const mx::array& x) {
  mx::array result = mx::contiguous(x);
  result.eval();
  return {result.data<float>(), result.data<float>() + result.size()};
}

/// Feeds all rows side by side and returns row 0's hidden states, token by
/// token, then the logits of its last token.
std::vector<float> run_rows(
    const Model& model,
    const std::vector<RowPlan>& rows) {
  LayerCaches caches =
      model.make_caches({.num_rows = static_cast<int>(rows.size())});
  std::vector<float> result;
  std::vector<size_t> done(rows.size(), 0);
  while (done[0] < rows[0].tokens.size()) {
    StepLayout layout;
    std::vector<int32_t> packed;
    for (size_t r = 0; r < rows.size(); ++r) {
      const size_t count = std::min(
          static_cast<size_t>(rows[r].chunk),
          rows[r].tokens.size() - done[r]);
      layout.rows.push_back(
          {.first_token = static_cast<int>(packed.size()),
           .num_tokens = static_cast<int>(count),
           .first_position = static_cast<int>(done[r])});
      const auto begin =
          rows[r].tokens.begin() + static_cast<ptrdiff_t>(done[r]);
      packed.insert(packed.end(), begin, begin + static_cast<ptrdiff_t>(count));
      done[r] += count;
    }
    const mx::array hidden = model.forward(
        mx::array(packed.begin(), {static_cast<int>(packed.size())}),
        layout,
        caches);
    const int count = layout.rows[0].num_tokens;
    const auto own =
        values(mx::slice(hidden, {0, 0}, {count, hidden.shape(1)}));
    result.insert(result.end(), own.begin(), own.end());
    if (done[0] == rows[0].tokens.size()) {
      const auto logits = values(model.logits(
          mx::slice(hidden, {count - 1, 0}, {count, hidden.shape(1)})));
      result.insert(result.end(), logits.begin(), logits.end());
    }
  }
  return result;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() &&
         std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

/// Chunks of 1, 7 and 64, rows that come along, and thread counts must not
/// change a bit of what the prompt in one piece gives.
void check_invariance(const fs::path& path, int length) {
  const auto model = make_model(open_checkpoint(path));
  const RowPlan whole = {random_tokens(*model, length, 1), length};
  const auto expected = run_rows(*model, {whole});
  for (const float x : expected) {
    ASSERT_TRUE(std::isfinite(x));
  }
  for (const int chunk : {1, 7, 64}) {
    EXPECT_TRUE(same_bits(run_rows(*model, {{whole.tokens, chunk}}), expected))
        << "chunks of " << chunk;
  }
  const RowPlan longer = {random_tokens(*model, 2 * length, 2), 9};
  const RowPlan shorter = {random_tokens(*model, length / 3, 3), 1};
  for (const int chunk : {5, length}) {
    EXPECT_TRUE(same_bits(
        run_rows(*model, {{whole.tokens, chunk}, longer, shorter}),
        expected))
        << "chunks of " << chunk << " beside two rows";
  }
  for (const int threads : {1, 3}) {
    kernels::configure({.threads = threads, .target = ""});
    EXPECT_TRUE(same_bits(run_rows(*model, {whole}), expected))
        << threads << " threads";
  }
  kernels::configure({});
}

class Invariance : public ::testing::TestWithParam<const char*> {};

TEST_P(Invariance, OfATinyModel) {
  check_invariance(
      fs::path(SHEAVE_SOURCE_DIR) / "tests" / "fixtures" / "golden" /
          GetParam(),
      100);
}

INSTANTIATE_TEST_SUITE_P(
    Fixtures,
    Invariance,
    ::testing::Values(
        "llama-4bit",
        "llama-mixed",
        "qwen3-8bit",
        "gemma3_text-4bit",
        "gemma3_text",
        "ministral_swa",
        "mistral_swa"),
    [](const auto& fixture) {
      std::string name = fixture.param;
      std::replace(name.begin(), name.end(), '-', '_');
      return name;
    });

/// Longer than Gemma's window, so that rings wrap.
TEST(RealModelInvariance, SmolLM2) {
  check_invariance(*find_model("smollm2"), 150);
}

TEST(RealModelInvariance, Gemma3) {
  check_invariance(*find_model("gemma3-270m"), 600);
}

} // namespace
} // namespace sheave
