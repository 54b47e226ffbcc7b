#include "sheave/weights/gguf.h"

#include <gtest/gtest.h>

#include <functional>

#include "sheave/weights/weights_test_support.h"

namespace sheave {
namespace {

using Builder = GgufBuilder;

GgufFile parse(const std::string& file) {
  return GgufFile::parse(bytes_of(file), "m.gguf");
}

std::string error_of(const std::string& file) {
  return file_error_of([&] { parse(file); });
}

TEST(Gguf, ReadsEveryKindOfValue) {
  Builder builder;
  builder.add("u8", 0, raw<uint8_t>(200)).add("i8", 1, raw<int8_t>(-3));
  builder.add("u16", 2, raw<uint16_t>(9)).add("i16", 3, raw<int16_t>(-9));
  builder.add("u32", uint32_t{4000000000}).add("i32", 5, raw(-5));
  builder.add("f32", 0.5F).add("bool", Builder::kBool, "\1");
  builder.add("string", "héllo").add("u64", 10, raw<uint64_t>(7));
  builder.add("i64", 11, raw<int64_t>(-7)).add("f64", 12, raw(0.25));
  const std::string list = raw(Builder::kU8) + raw<uint64_t>(1) + "x";
  builder.add_list("lists", Builder::kArray, 1, list);
  builder.add_list("i32s", Builder::kI32, 2, raw(1) + raw(-2));
  builder.add_list("bools", Builder::kBool, 2, std::string("\0\1", 2));
  builder.add_list("f32s", Builder::kF32, 1, raw(0.5F));
  builder.add_list(
      "strings",
      Builder::kString,
      2,
      Builder::text("a") + Builder::text("\xff"));
  const GgufFile file = parse(builder.build());
  EXPECT_EQ(file.integer("u8"), 200);
  EXPECT_EQ(file.integer("i8"), -3);
  EXPECT_EQ(file.integer("u16"), 9);
  EXPECT_EQ(file.integer("i16"), -9);
  EXPECT_EQ(file.integer("u32"), 4000000000);
  EXPECT_EQ(file.integer("i32"), -5);
  EXPECT_EQ(file.number("f32"), 0.5);
  EXPECT_EQ(file.number("i32"), -5.0);
  EXPECT_EQ(file.boolean("bool"), true);
  EXPECT_EQ(file.string("string"), "héllo");
  EXPECT_EQ(file.integer("u64"), 7);
  EXPECT_EQ(file.integer("i64"), -7);
  EXPECT_EQ(file.number("f64"), 0.25);
  EXPECT_EQ(file.integers("i32s"), (std::vector<int64_t>{1, -2}));
  EXPECT_EQ(file.integers("bools"), (std::vector<int64_t>{0, 1}));
  EXPECT_EQ(file.floats("f32s"), std::vector<float>{0.5F});
  EXPECT_EQ(file.strings("strings"), (std::vector<std::string>{"a", "\xff"}));
  EXPECT_TRUE(file.is_list("lists"));
  EXPECT_FALSE(file.is_list("string"));
  EXPECT_EQ(file.integer("none"), std::nullopt);
  EXPECT_TRUE(file.strings("none").empty());
}

TEST(Gguf, ReadsTensorsOutermostDimensionFirst) {
  Builder builder;
  builder.add_tensor("q", {64, 3}, 2, 0).add_tensor("f", {5}, 0, 128);
  const std::string bytes = builder.build(148);
  const auto file = parse(bytes);
  const auto& tensors = file.tensors();
  ASSERT_EQ(tensors.size(), 2U);
  EXPECT_EQ(tensors[0].type, "Q4_0");
  EXPECT_EQ(tensors[0].shape, (std::vector<int64_t>{3, 64}));
  EXPECT_EQ(tensors[0].bytes, 3U * 2 * 18);
  EXPECT_EQ(tensors[0].offset, bytes.size() - 148);
  EXPECT_EQ(tensors[1].offset, bytes.size() - 20);
}

TEST(Gguf, HonoursTheAlignmentItStates) {
  Builder builder;
  builder.add("general.alignment", uint32_t{64});
  builder.add_tensor("f", {1}, 0, 64);
  const std::string bytes = builder.build(68, 0, 0, 64);
  EXPECT_EQ(parse(bytes).tensors()[0].offset, bytes.size() - 4);
}

TEST(Gguf, NamesTheKeyThatHoldsAnotherKindOfValue) {
  Builder builder;
  builder.add("n", uint32_t{1}).add("s", "text");
  builder.add("bytes", "a\xff").add("big", 10, raw(UINT64_MAX));
  builder.add_list("l", Builder::kI32, 1, raw(1));
  const GgufFile file = parse(builder.build());
  const auto error = [&](const std::function<void()>& get) {
    return file_error_of(get);
  };
  EXPECT_EQ(
      error([&] { (void)file.string("n"); }),
      "m.gguf: key n is an integer, expected a string");
  EXPECT_EQ(
      error([&] { (void)file.integer("l"); }),
      "m.gguf: key l is a list of integers, expected an integer");
  EXPECT_EQ(
      error([&] { (void)file.strings("l"); }),
      "m.gguf: key l is a list of integers, expected a list of strings");
  EXPECT_EQ(
      error([&] { (void)file.number("s"); }),
      "m.gguf: key s is a string, expected an integer");
  EXPECT_EQ(
      error([&] { (void)file.string("bytes"); }),
      "m.gguf: key bytes is \"a?\", expected UTF-8");
  EXPECT_TRUE(contains(
      error([&] { (void)file.integer("big"); }),
      "key big is 18446744073709551615, expected at most"));
}

TEST(Gguf, TellsUtf8FromOtherBytes) {
  const auto accepts = [](const char* text) {
    Builder builder;
    builder.add("s", text);
    const GgufFile file = parse(builder.build());
    return file_error_of([&] { (void)file.string("s"); }).empty();
  };
  for (const char* text :
       {"",
        "a",
        "\xC3\xA9",
        "\xE2\x82\xAC",
        "\xF0\x9F\x8C\x99",
        "\xED\x9F\xBF",
        "\xEE\x80\x80",
        "\xF4\x8F\xBF\xBF"}) {
    EXPECT_TRUE(accepts(text)) << text;
  }
  for (const char* text :
       {"\x80",
        "\xC0\x80",
        "\xC3",
        "\xE2\x82",
        "\xE0\x80\x80",
        "\xED\xA0\x80",
        "\xF0\x80\x80\x80",
        "\xF4\x90\x80\x80",
        "\xF5\x80\x80\x80",
        "\xC3("}) {
    EXPECT_FALSE(accepts(text)) << text;
  }
}

struct Broken {
  std::string file;
  std::string message;
};

TEST(Gguf, NamesFileAndKeyOfBrokenMetadata) {
  const std::vector<Broken> cases = {
      {"", "is not a GGUF file"},
      {"GGML....", "is not a GGUF file"},
      {"GGUF", "the file ends within the version"},
      {"GGUF" + raw<uint32_t>(1), "has GGUF version 1, expected 2 or 3"},
      {"GGUF" + raw<uint32_t>(0x03000000), "is a big-endian GGUF file"},
      {Builder().build(0, UINT64_MAX), "18446744073709551615 tensors"},
      {Builder().build(0, 0, 1), "has 1 keys, expected at most 0"},
      {Builder().add("", "x").build(), "a key's name is \"\""},
      {Builder().add("a\nb", "x").build(), "a key's name is \"a?b\""},
      {Builder().add("\xc3\xa9", "x").build(), "printable ASCII"},
      {Builder().add(std::string(200, 'k'), "x").build(), "(200 bytes)"},
      {Builder().add("k", "x").add("k", "y").build(), "has the key k twice"},
      {Builder().add("k", 13, raw(0.0)).build(),
       "key k has the unknown type 13"},
      {Builder().add("k", Builder::kString, raw(UINT64_MAX)).build(),
       "the file ends within k: expected 18446744073709551615 bytes"},
      {Builder().add_list("k", 99, 1, "abcdefgh").build(),
       "key k has the unknown type 99"},
      {Builder().add_list("k", 0, UINT64_MAX, "").build(),
       "has 18446744073709551615 elements of key k, expected at most 0"},
      {Builder().add_list("k", 8, UINT64_MAX / 8, "").build(),
       "elements of key k"},
      {Builder().add_list("k", 0, 1 << 25, std::string(1 << 25, '0')).build(),
       "key k has 33554432 elements, expected at most 16777216"},
      {Builder().add("general.alignment", uint32_t{0}).build(),
       "key general.alignment is 0, expected a power of two"},
      {Builder().add("general.alignment", uint32_t{48}).build(),
       "key general.alignment is 48"},
      {Builder().add("general.alignment", uint32_t{1} << 31).build(),
       "key general.alignment is 2147483648"},
      {Builder().add("general.alignment", "32").build(),
       "key general.alignment is a string, expected an integer"},
  };
  for (const Broken& c : cases) {
    const std::string message = error_of(c.file);
    EXPECT_TRUE(begins_with(message, "m.gguf: "));
    EXPECT_TRUE(contains(message, c.message));
  }
}

TEST(Gguf, RefusesArraysThatNestTooDeep) {
  std::string value = raw(Builder::kU8) + raw<uint64_t>(0);
  for (int i = 0; i < 9; ++i) {
    value = raw(Builder::kArray) + raw<uint64_t>(1) + value;
  }
  EXPECT_TRUE(contains(
      error_of(Builder().add("k", Builder::kArray, value).build()),
      "key k nests arrays deeper than 4 levels"));
}

Broken broken_tensor(
    const std::string& name,
    const std::vector<uint64_t>& dims,
    uint32_t type,
    uint64_t offset,
    const std::string& message) {
  return {Builder().add_tensor(name, dims, type, offset).build(64), message};
}

TEST(Gguf, NamesFileAndTensorOfABrokenDescription) {
  constexpr uint64_t kBig = uint64_t{1} << 40;
  const std::vector<Broken> cases = {
      broken_tensor("", {1}, 0, 0, "a tensor's name is \"\""),
      broken_tensor("a\r", {1}, 0, 0, "a tensor's name is \"a?\""),
      broken_tensor("t", {}, 0, 0, "tensor t has 0 dimensions"),
      broken_tensor("t", {1, 1, 1, 1, 1}, 0, 0, "tensor t has 5 dimensions"),
      broken_tensor("t", {0}, 0, 0, "tensor t has a dimension of 0"),
      broken_tensor(
          "t",
          {UINT64_MAX},
          0,
          0,
          "a dimension of 18446744073709551615"),
      broken_tensor("t", {kBig, kBig}, 0, 0, "expected rows of whole F32"),
      broken_tensor("t", {kBig, 1 << 22}, 0, 0, "than a file can have"),
      broken_tensor(
          "t",
          {48},
          2,
          0,
          "expected rows of whole Q4_0 blocks of 32"),
      broken_tensor("t", {16, 16}, 12, 0, "whole Q4_K blocks of 256"),
      broken_tensor("t", {1}, 4, 0, "tensor t has the type number 4"),
      broken_tensor("t", {1}, 9999, 0, "tensor t has the type number 9999"),
      broken_tensor("t", {17}, 0, 0, "takes 68 bytes at byte 0 of the data"),
      broken_tensor("t", {1}, 0, 96, "expected it within 64"),
      broken_tensor("t", {1}, 0, UINT64_MAX - 31, "tensor t takes 4 bytes"),
      broken_tensor("t", {1}, 0, 4, "offset 4, expected a multiple of 32"),
      {Builder()
           .add_tensor("t", {1}, 0, 0)
           .add_tensor("t", {1}, 0, 32)
           .build(64),
       "has the tensor t twice"},
      {Builder()
           .add_tensor("t", {9}, 0, 0)
           .add_tensor("u", {1}, 0, 32)
           .build(64),
       "tensors t and u overlap"},
      {Builder()
           .add_tensor("t", {1}, 0, 0)
           .add_tensor("u", {1}, 0, 0)
           .build(64),
       "tensors t and u overlap"},
      {Builder().add_tensor("t", {1}, 0, 0).build(0), "within 0"},
  };
  for (const Broken& c : cases) {
    const std::string message = error_of(c.file);
    EXPECT_TRUE(begins_with(message, "m.gguf: "));
    EXPECT_TRUE(contains(message, c.message));
  }
}

TEST(Gguf, RefusesAFileCutShortAnywhere) {
  Builder builder;
  builder.add("general.architecture", "llama").add("f", 0.5F);
  builder.add_list("l", Builder::kString, 1, Builder::text("abc"));
  builder.add_tensor("t", {8}, 0, 0);
  const std::string whole = builder.build(32);
  EXPECT_EQ(error_of(whole), "");
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_TRUE(begins_with(error_of(whole.substr(0, size)), "m.gguf: "))
        << size;
  }
}

} // namespace
} // namespace sheave
