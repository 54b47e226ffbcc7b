// Models against logits that Transformers (float checkpoints) and mlx-lm
// (quantized ones) computed on the same weights;
// tests/fixtures/golden/README.md says how they were made.

#include <gtest/gtest.h>
#include <mlx/io.h>
#include <mlx/ops.h>
#include <mlx/transforms.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "sheave/kernels/logits/logits.h"
#include "sheave/models/registry.h"
#include "sheave/weights/checkpoint.h"

namespace sheave {
namespace {

namespace fs = std::filesystem;

/// chunk: prompt tokens per step, 0 for the whole prompt at once.
struct GoldenCase {
  std::string name;
  float tolerance;
  int chunk;
};

std::string case_name(const ::testing::TestParamInfo<GoldenCase>& info) {
  std::string name =
      info.param.name + "_chunk" +
      (info.param.chunk == 0 ? "all" : std::to_string(info.param.chunk));
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

fs::path fixture(const std::string& name) {
  return fs::path(SHEAVE_SOURCE_DIR) / "tests" / "fixtures" / "golden" / name;
}

/// One conversation with a fixture's model, float32 throughout.
class Conversation {
 public:
  explicit Conversation(const fs::path& folder)
      : model_(make_model(open_checkpoint(folder), Arithmetic::kExact)),
        caches_(model_->make_caches({.dtype = mx::float32})) {}

  /// Logits of every token, [T, V], computed.
  mx::array logits(std::span<const int32_t> tokens) {
    const int count = static_cast<int>(tokens.size());
    mx::array result = model_->logits(model_->forward(
        mx::array(tokens.begin(), {count}),
        StepLayout::single(offset_, count),
        caches_));
    result.eval();
    offset_ += count;
    return result;
  }

 private:
  std::unique_ptr<Model> model_;
  LayerCaches caches_;
  int offset_ = 0;
};

/// Largest absolute difference between row `row` of `expected` and `got`'s
/// row `got_row`.
float row_difference(
    const mx::array& expected,
    int row,
    const mx::array& got,
    int got_row) {
  const int vocab = expected.shape(1);
  const float* a = expected.data<float>() + row * vocab;
  const float* b = got.data<float>() + got_row * vocab;
  float worst = 0;
  for (int i = 0; i < vocab; ++i) {
    const float difference = std::abs(a[i] - b[i]);
    worst = std::isnan(difference) ? INFINITY : std::max(worst, difference);
  }
  return worst;
}

class Golden : public ::testing::TestWithParam<GoldenCase> {};

TEST_P(Golden, LogitsAndGreedyTokensMatch) {
  const GoldenCase& golden = GetParam();
  const fs::path folder = fixture(golden.name);
  auto tensors =
      mx::load_safetensors((folder / "golden.safetensors").string()).first;
  for (auto& [name, tensor] : tensors) {
    tensor.eval();
  }
  const mx::array& prompt = tensors.at("prompt");
  const mx::array& tokens = tensors.at("tokens");
  const mx::array& prompt_logits = tensors.at("prompt_logits");
  const mx::array& step_logits = tensors.at("step_logits");
  ASSERT_EQ(prompt_logits.shape(0), prompt.shape(0));
  ASSERT_EQ(step_logits.shape(0), tokens.shape(0));
  ASSERT_GE(tokens.shape(0), 40);

  Conversation run(folder);
  const std::span<const int32_t> prompt_ids(
      prompt.data<int32_t>(),
      prompt.size());
  const size_t chunk =
      golden.chunk == 0 ? prompt_ids.size() : static_cast<size_t>(golden.chunk);
  float worst = 0;
  mx::array last(0.0F);
  int last_row = 0;
  for (size_t begin = 0; begin < prompt_ids.size(); begin += chunk) {
    const size_t count = std::min(chunk, prompt_ids.size() - begin);
    last = run.logits(prompt_ids.subspan(begin, count));
    last_row = static_cast<int>(count) - 1;
    for (int row = 0; row <= last_row; ++row) {
      worst = std::max(
          worst,
          row_difference(
              prompt_logits,
              static_cast<int>(begin) + row,
              last,
              row));
    }
  }
  EXPECT_LE(worst, golden.tolerance) << "prompt";

  for (int step = 0; step < tokens.shape(0); ++step) {
    const float difference = row_difference(step_logits, step, last, last_row);
    EXPECT_LE(difference, golden.tolerance) << "step " << step;
    const int vocab = last.shape(1);
    const int32_t greedy = kernels::argmax_logit(
        {last.data<float>() + last_row * vocab, static_cast<size_t>(vocab)});
    const int32_t expected = tokens.data<int32_t>()[step];
    ASSERT_EQ(greedy, expected) << "step " << step;
    last = run.logits({&expected, 1});
    last_row = 0;
  }
}

std::vector<GoldenCase> golden_cases() {
  std::vector<GoldenCase> cases;
  const auto add = [&](const char* name, float tolerance) {
    for (const int chunk : {0, 7, 1}) {
      cases.push_back({name, tolerance, chunk});
    }
  };
  for (const char* name :
       {"llama",
        "llama_tied",
        "llama_linear",
        "llama_yarn",
        "llama_bias",
        "llama_sharded",
        "mistral_swa",
        "ministral_swa",
        "qwen3",
        "qwen3_untied",
        "gemma3_text",
        "gemma3_text_mqa",
        "gemma3_text_v5"}) {
    add(name, 1e-3F);
  }
  for (const char* name :
       {"llama-4bit",
        "llama-8bit",
        "llama-mixed",
        "qwen3-4bit",
        "qwen3-8bit",
        "qwen3-mixed",
        "gemma3_text-4bit",
        "gemma3_text-8bit",
        "gemma3_text-mixed"}) {
    add(name, 1e-2F);
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(
    Checkpoints,
    Golden,
    ::testing::ValuesIn(golden_cases()),
    case_name);

} // namespace
} // namespace sheave
