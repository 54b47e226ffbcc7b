// A whole model as Transformers writes it, and copies of it with one thing
// wrong each: what is reported names the file, and the key or tensor.

#include <gtest/gtest.h>
#include <mlx/io.h>
#include <mlx/memory.h>
#include <mlx/ops.h>

#include <cstring>
#include <functional>
#include <nlohmann/json.hpp>

#include "sheave/weights/checkpoint.h"
#include "sheave/weights/weights_test_support.h"

namespace sheave {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr const char* kUp = "model.layers.3.mlp.up_proj"; // [128, 64]

fs::path golden() {
  return fs::path(SHEAVE_SOURCE_DIR) / "tests/fixtures/golden/llama";
}

/// model.safetensors, taken apart.
struct Parts {
  Json header;
  std::string data;
};

Parts take_apart(const std::string& file) {
  uint64_t size = 0;
  std::memcpy(&size, file.data(), sizeof(size));
  return {Json::parse(file.substr(8, size)), file.substr(8 + size)};
}

/// A copy of the golden model, changed by `change`.
class Copy {
 public:
  explicit Copy(const std::function<void(Parts&)>& change = [](Parts&) {}) {
    for (const char* name :
         {"config.json", "tokenizer.json", "tokenizer_config.json"}) {
      write(name, read_whole(golden() / name));
    }
    Parts parts = take_apart(read_whole(golden() / "model.safetensors"));
    change(parts);
    write(
        "model.safetensors",
        safetensors_file(parts.header.dump(), parts.data));
  }

  void write(const std::string& name, std::string_view content) const {
    folder_.write(name, content);
  }
  void remove(const std::string& name) const {
    fs::remove(folder_.path() / name);
  }
  std::string file(const std::string& name) const {
    return (folder_.path() / name).string();
  }
  Checkpoint open() const {
    return Checkpoint::open(folder_.path());
  }
  std::string error_of_opening() const {
    return file_error_of([&] { (void)open(); });
  }

 private:
  TemporaryFolder folder_;
};

/// What is said when the matrix kUp of a copy changed like this is taken.
/// "~" stands for the copy's model.safetensors.
std::string error_of_up(const std::function<void(Parts&)>& change) {
  const Copy copy(change);
  std::string message =
      file_error_of([&] { (void)copy.open().weight(kUp, 128, 64); });
  const std::string path = copy.file("model.safetensors");
  return message.starts_with(path) ? "~" + message.substr(path.size())
                                   : message;
}

Json& up_entry(Parts& parts) {
  return parts.header[std::string(kUp) + ".weight"];
}

size_t up_begin(Parts& parts) {
  return up_entry(parts)["data_offsets"][0].get<size_t>();
}

bool same(const mx::array& a, const mx::array& b) {
  return a.shape() == b.shape() && mx::array_equal(a, b).item<bool>();
}

TEST(GoldenCheckpoint, HoldsWhatMlxReadsFromTheSameFile) {
  const auto checkpoint = Checkpoint::open(golden());
  EXPECT_EQ(checkpoint.config().model_type, "llama");
  EXPECT_TRUE(checkpoint.text_assets().has_tokenizer());
  const auto arrays =
      mx::load_safetensors((golden() / "model.safetensors").string()).first;
  EXPECT_EQ(arrays.size(), checkpoint.tensors().size());
  for (const auto& [name, array] : arrays) {
    if (array.ndim() == 1) {
      const auto found = checkpoint.vector(name, array.shape(0));
      EXPECT_TRUE(same(found, mx::astype(array, mx::float32))) << name;
      continue;
    }
    const auto weight = checkpoint.weight(
        name.substr(0, name.rfind('.')),
        array.shape(0),
        array.shape(1));
    EXPECT_EQ(weight.data.dtype(), array.dtype()) << name;
    EXPECT_TRUE(same(weight.data, array)) << name;
  }
}

TEST(GoldenCheckpoint, TakesItsMatricesWithoutCopying) {
  if (mx::is_available(mx::Device::gpu)) {
    GTEST_SKIP() << "a GPU may need a copy";
  }
  const auto checkpoint = Checkpoint::open(golden());
  std::vector<mx::array> taken;
  const size_t before = mx::get_active_memory();
  for (const CheckpointTensor& tensor : checkpoint.tensors()) {
    const auto& shape = tensor.info.shape;
    if (shape.size() == 2) {
      const std::string& name = tensor.canonical_name;
      taken.push_back(checkpoint
                          .weight(
                              name.substr(0, name.rfind('.')),
                              static_cast<int>(shape[0]),
                              static_cast<int>(shape[1]))
                          .data);
      taken.back().eval();
      EXPECT_EQ(
          taken.back().data<uint8_t>(),
          tensor.file->bytes().data() + tensor.info.offset)
          << name;
    }
  }
  EXPECT_GT(taken.size(), 50U);
  EXPECT_EQ(mx::get_active_memory(), before);
}

TEST(GoldenCheckpoint, NamesFileAndTensorThatAreWrong) {
  EXPECT_EQ(error_of_up([](Parts&) {}), "");
  const std::string tensor = "~: tensor model.layers.3.mlp.up_proj.weight ";
  EXPECT_EQ(
      error_of_up([](Parts& parts) {
        parts.data.replace(up_begin(parts) + 10, 2, "\xC0\x7F");
      }),
      tensor + "holds a NaN or infinity in element 5, expected finite numbers");
  EXPECT_EQ(
      error_of_up([](Parts& parts) {
        parts.data.replace(up_begin(parts) + 2 * 8191, 2, "\x80\xFF");
      }),
      tensor +
          "holds a NaN or infinity in element 8191, expected finite numbers");
  EXPECT_EQ(
      error_of_up([](Parts& parts) { up_entry(parts)["shape"] = {64, 128}; }),
      tensor + "is [64, 128], expected [128, 64]");
  EXPECT_EQ(
      error_of_up([](Parts& parts) { up_entry(parts)["shape"] = {8192}; }),
      tensor + "is [8192], expected [128, 64]");
  EXPECT_EQ(
      error_of_up([](Parts& parts) { up_entry(parts)["shape"] = {128, 65}; }),
      tensor + "takes 16384 bytes, expected 16640 for BF16 [128, 65]");
  EXPECT_EQ(
      error_of_up([](Parts& parts) { up_entry(parts)["dtype"] = "F32"; }),
      tensor + "takes 16384 bytes, expected 32768 for F32 [128, 64]");
  EXPECT_EQ(
      error_of_up([](Parts& parts) {
        const size_t end = parts.data.size();
        up_entry(parts)["dtype"] = "I32";
        up_entry(parts)["data_offsets"] = {end, end + 4 * 8192};
        parts.data.append(4 * 8192, '\0');
      }),
      tensor +
          "has type I32, expected one of F32 F16 BF16 Q4_0 Q4_1 Q5_0 Q5_1 "
          "Q8_0 Q4_K Q5_K Q6_K");
  EXPECT_EQ(
      error_of_up([](Parts& parts) { parts.data.resize(1000); }).substr(0, 9),
      "~: tensor");
}

TEST(GoldenCheckpoint, NamesATensorThatIsMissing) {
  const Copy copy([](Parts& parts) {
    parts.header.erase(std::string(kUp) + ".weight");
    parts.header.erase("model.norm.weight");
  });
  const auto checkpoint = copy.open();
  EXPECT_TRUE(contains(
      file_error_of([&] { (void)checkpoint.weight(kUp, 128, 64); }),
      ": tensor model.layers.3.mlp.up_proj.weight is missing, expected it"));
  EXPECT_TRUE(contains(
      file_error_of([&] { (void)checkpoint.vector("model.norm.weight", 64); }),
      ": tensor model.norm.weight is missing, expected it"));
}

TEST(GoldenCheckpoint, OpensWithoutATokenizer) {
  const Copy copy;
  copy.remove("tokenizer.json");
  copy.remove("tokenizer_config.json");
  EXPECT_FALSE(copy.open().text_assets().has_tokenizer());
}

TEST(GoldenCheckpoint, OpensAnArchitectureThatItCannotRun) {
  const Copy copy;
  copy.write("config.json", R"({"model_type":"mamba2"})");
  const auto checkpoint = copy.open();
  EXPECT_EQ(checkpoint.config().model_type, "mamba2");
  EXPECT_FALSE(knows_model_type(checkpoint.config().model_type));
}

TEST(GoldenCheckpoint, NamesTheFileThatIsMissingOrEmpty) {
  for (const std::string name : {"config.json", "model.safetensors"}) {
    const Copy copy;
    copy.write(name, "");
    EXPECT_TRUE(begins_with(copy.error_of_opening(), copy.file(name) + ": "));
    EXPECT_TRUE(contains(copy.error_of_opening(), "is empty"));
    copy.remove(name);
    EXPECT_TRUE(begins_with(copy.error_of_opening(), copy.file(name) + ": "));
    EXPECT_TRUE(contains(copy.error_of_opening(), "o such file"));
    fs::create_directory(copy.file(name));
    EXPECT_TRUE(begins_with(copy.error_of_opening(), copy.file(name) + ": "));
    EXPECT_TRUE(contains(copy.error_of_opening(), "is not a regular file"));
  }
}

TEST(GoldenCheckpoint, NamesShardsThatGoRoundInCircles) {
  const Copy copy;
  const std::string index = "model.safetensors.index.json";
  copy.write(index, R"({"weight_map":{"a":")" + index + "\"}}");
  EXPECT_TRUE(
      begins_with(copy.error_of_opening(), copy.file(index) + ": has a header"))
      << "the index as its own shard";
  copy.write(index, R"({"weight_map":{"a":"loop"}})");
  fs::create_symlink("loop", copy.file("loop"));
  EXPECT_TRUE(begins_with(
      copy.error_of_opening(),
      copy.file("loop") + ": can't be opened: "));
}

} // namespace
} // namespace sheave
