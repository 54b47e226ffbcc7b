// The two real models that scripts/setup fetches: perplexity against
// llama.cpp's, tokens against the reference tokenizers, greedy text against
// what was recorded, and memory.

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "sheave/base/memory.h"
#include "sheave/engine/generator.h"
#include "sheave/engine/language_model.h"
#include "sheave/engine/model_path.h"
#include "sheave/engine/perplexity.h"

namespace sheave {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

fs::path fixtures() {
  return fs::path(SHEAVE_SOURCE_DIR) / "tests" / "fixtures";
}

std::string read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file) << path << " can't be read";
  std::ostringstream content;
  content << file.rdbuf();
  return content.str();
}

Json read_json(const fs::path& path) {
  return Json::parse(read_file(path));
}

fs::path bundled(const std::string& name) {
  const auto path = find_model(name);
  EXPECT_TRUE(path) << path.error().message;
  return *path;
}

class RealModel : public ::testing::TestWithParam<const char*> {};

INSTANTIATE_TEST_SUITE_P(
    Bundled,
    RealModel,
    ::testing::Values("smollm2", "gemma3-270m"),
    [](const auto& model) {
      return std::string(model.param) == "smollm2" ? "SmolLM2" : "Gemma3";
    });

/// Perplexity of the recorded text with this arithmetic.
double
perplexity_of(const char* name, const Json& recorded, Arithmetic arithmetic) {
  const LanguageModel model =
      LanguageModel::load(bundled(name), {.arithmetic = arithmetic});
  const auto got = perplexity(
      model,
      read_file(
          fixtures() / "perplexity" / recorded.at("text").get<std::string>()),
      {.context_tokens = 512});
  EXPECT_TRUE(got) << got.error().message;
  EXPECT_EQ(got->chunks, recorded.at("512").at("chunks").get<int>());
  return got->perplexity;
}

TEST_P(RealModel, PerplexityIsThatOfLlamaCppAndOfExactArithmetic) {
  const Json recorded =
      read_json(fixtures() / "perplexity" / "expected.json").at(GetParam());
  const double llama_cpp = recorded.at("512").at("perplexity").get<double>();
  const double fast = perplexity_of(GetParam(), recorded, Arithmetic::kFast);
  const double exact = perplexity_of(GetParam(), recorded, Arithmetic::kExact);
  RecordProperty("perplexity", std::to_string(fast));
  RecordProperty("exact_perplexity", std::to_string(exact));
  EXPECT_NEAR(fast / llama_cpp, 1.0, 0.01) << fast << " against " << llama_cpp;
  EXPECT_NEAR(exact / llama_cpp, 1.0, 0.01)
      << exact << " against " << llama_cpp;
  EXPECT_NEAR(fast / exact, 1.0, 0.005) << fast << " against " << exact;
}

TEST_P(RealModel, TokenizesAsTheReferenceDoes) {
  const std::string file = std::string(GetParam()) == "smollm2"
                               ? "vectors_smollm2.json"
                               : "vectors_gemma3.json";
  const Json vectors = read_json(fixtures() / "text" / file);
  ASSERT_GE(vectors.size(), 300U);
  const LanguageModel model = LanguageModel::load(bundled(GetParam()));
  for (const Json& vector : vectors) {
    const auto text = vector.at("text").get<std::string>();
    const auto ids = model.tokenizer().encode(
        text,
        {.add_special = false, .parse_special = true});
    ASSERT_TRUE(ids) << ids.error().message;
    EXPECT_EQ(*ids, vector.at("ids").get<std::vector<int32_t>>()) << text;
  }
}

TEST_P(RealModel, GreedyTextIsAsRecorded) {
  const Json recorded =
      read_json(fixtures() / "greedy" / "greedy.json").at(GetParam());
  ASSERT_EQ(recorded.size(), 5U);
  const LanguageModel model = LanguageModel::load(
      bundled(GetParam()),
      {.arithmetic = Arithmetic::kExact}); // as the recorded texts are
  for (const Json& example : recorded) {
    const auto prompt = example.at("prompt").get<std::string>();
    const std::vector<ChatMessage> messages = {{"user", prompt}};
    const auto ids = example.at("chat").get<bool>()
                         ? model.encode_chat(messages)
                         : model.encode(prompt);
    ASSERT_TRUE(ids) << ids.error().message;
    Generator generator(model, {.dtype = mx::float32});
    const auto got = generator.generate(*ids, {.max_tokens = 32});
    ASSERT_TRUE(got) << got.error().message;
    EXPECT_EQ(got->text, example.at("text").get<std::string>()) << prompt;
  }
}

// Its own process under ctest, so that the peak is this load's alone.
TEST(RealModelMemory, LoadingSmolLM2StaysUnderOneAndAHalfFiles) {
  const fs::path path = bundled("smollm2");
  const LanguageModel model = LanguageModel::load(path);
  Generator generator(model, {});
  const auto ids = model.encode("Hello");
  ASSERT_TRUE(ids);
  ASSERT_TRUE(generator.generate(*ids, {.max_tokens = 2})); // touches all
  const auto limit = static_cast<uint64_t>(
      1.5 * static_cast<double>(fs::file_size(path)) + 80e6);
  RecordProperty("peak_rss_bytes", std::to_string(peak_rss_bytes()));
  EXPECT_LT(peak_rss_bytes(), limit);
}

} // namespace
} // namespace sheave
