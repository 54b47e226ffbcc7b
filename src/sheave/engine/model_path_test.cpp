#include "sheave/engine/model_path.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace sheave {
namespace {

namespace fs = std::filesystem;

class ModelPath : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* old = std::getenv("SHEAVE_HOME");
    had_home_ = old != nullptr;
    old_home_ = had_home_ ? old : "";
    home_ = fs::path(::testing::TempDir()) / "sheave_model_path_test";
    fs::remove_all(home_);
    fs::create_directories(home_ / "models");
    setenv("SHEAVE_HOME", home_.c_str(), 1);
  }

  void TearDown() override {
    fs::remove_all(home_);
    if (had_home_) {
      setenv("SHEAVE_HOME", old_home_.c_str(), 1);
    } else {
      unsetenv("SHEAVE_HOME");
    }
  }

  fs::path home_;

 private:
  bool had_home_ = false;
  std::string old_home_;
};

TEST_F(ModelPath, TakesAPathAsItIs) {
  const auto found = find_model(home_.string());
  ASSERT_TRUE(found);
  EXPECT_EQ(*found, home_);
}

TEST_F(ModelPath, FindsABundledModelByName) {
  const fs::path file = home_ / "models" / bundled_models()[0].file;
  std::ofstream(file) << "x";
  const auto found = find_model("smollm2");
  ASSERT_TRUE(found);
  EXPECT_EQ(*found, file);
}

TEST_F(ModelPath, SaysWhereABundledModelShouldBe) {
  const auto found = find_model("smollm2");
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, ErrorCode::kNotFound);
  EXPECT_NE(
      found.error().message.find((home_ / "models").string()),
      std::string::npos);
}

TEST_F(ModelPath, NamesWhatItDoesNotKnow) {
  for (const char* name : {"no-such-model", ""}) {
    const auto found = find_model(name);
    ASSERT_FALSE(found);
    EXPECT_NE(found.error().message.find("smollm2"), std::string::npos);
  }
}

} // namespace
} // namespace sheave
