#include "sheave/text/chat_template.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace sheave {
namespace {

namespace fs = std::filesystem;

const fs::path kFixtures = SHEAVE_SOURCE_DIR "/tests/fixtures/text";

std::string read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

ChatTemplate compiled(const std::string& source) {
  auto made = ChatTemplate::from_source(source, "<s>", "</s>");
  EXPECT_TRUE(made) << made.error().message;
  return std::move(*made);
}

/// `expected` is expected/<template>.<case>.txt or .error.
Result<std::string> render_fixture(const fs::path& expected) {
  const std::string stem = expected.stem().string();
  const size_t dot = stem.find('.');
  const fs::path cases = kFixtures / "cases" / stem.substr(dot + 1);
  const std::string messages = read_file(cases.string() + ".messages.json");
  const std::string tools = read_file(cases.string() + ".tools.json");
  const std::string extra = read_file(cases.string() + ".extra.json");
  const auto name = stem.substr(0, dot) + ".jinja";
  return compiled(read_file(kFixtures / "templates" / name))
      .render(
          {.messages_json = messages,
           .tools_json = tools,
           .extra_json = extra,
           .now_s = 1'700'000'000});
}

TEST(ChatTemplate, RendersWhatTransformersRenders) {
  setenv("TZ", "UTC", /*overwrite=*/1);
  int count = 0;
  for (const auto& entry : fs::directory_iterator(kFixtures / "expected")) {
    SCOPED_TRACE(entry.path().filename());
    const auto text = render_fixture(entry.path());
    if (entry.path().extension() == ".txt") {
      EXPECT_EQ(text.value_or("failed"), read_file(entry.path()))
          << (text ? "" : text.error().message);
    } else {
      ASSERT_FALSE(text);
      EXPECT_EQ(text.error().code, ErrorCode::kInvalidArgument);
      EXPECT_EQ(text.error().message, read_file(entry.path()));
    }
    ++count;
  }
  EXPECT_GE(count, 50);
}

TEST(ChatTemplate, ServesToolsWithTheTemplateForTools) {
  const std::string config = R"({"chat_template": [
    {"name": "default", "template": "plain"},
    {"name": "tool_use", "template": "{{ tools | length }} tools"}]})";
  const auto chat =
      ChatTemplate::from_sources({.tokenizer_config_json = config}, "", "");
  ASSERT_TRUE(chat) << chat.error().message;
  EXPECT_EQ(chat->render({.messages_json = "[]"}).value(), "plain");
  EXPECT_EQ(
      chat->render({.messages_json = "[]", .tools_json = "[]"}).value(),
      "plain");
  EXPECT_EQ(
      chat->render({.messages_json = "[]", .tools_json = "[{}]"}).value(),
      "1 tools");
}

TEST(ChatTemplate, IsFoundInTheFirstPlaceThatHasOne) {
  const auto choose = [](const ChatTemplateSources& sources) {
    return choose_chat_template(sources, /*for_tools=*/false);
  };
  EXPECT_EQ(
      choose({.chat_template_jinja = "jinja",
              .tokenizer_config_json = R"({"chat_template": "config"})",
              .gguf_chat_template = "gguf"})
          .value(),
      "jinja");
  EXPECT_EQ(
      choose({.tokenizer_config_json = R"({"chat_template": "config"})",
              .gguf_chat_template = "gguf"})
          .value(),
      "config");
  EXPECT_EQ(choose({.gguf_chat_template = "gguf"}).value(), "gguf");
  const auto none = choose({.tokenizer_config_json = "{}"});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, ErrorCode::kNotFound);
}

TEST(ChatTemplate, SaysWhichLineIsNotJinja) {
  const auto made = ChatTemplate::from_source("a\n{% if %}", "", "");
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, ErrorCode::kInvalidFile);
  EXPECT_NE(made.error().message.find("line 2"), std::string::npos);
}

TEST(ChatTemplate, SaysWhichFieldOfARequestIsMalformed) {
  const ChatTemplate chat = compiled("x");
  const auto message = [&](const ChatRequest& request) {
    const auto text = chat.render(request);
    EXPECT_FALSE(text);
    EXPECT_EQ(text.error().code, ErrorCode::kInvalidArgument);
    return text.error().message.substr(0, 8);
  };
  EXPECT_EQ(message({.messages_json = "{"}), "messages");
  EXPECT_EQ(message({.messages_json = "[]", .tools_json = "{}"}), "tools: e");
  EXPECT_EQ(message({.messages_json = "[]", .extra_json = "1"}), "extra: e");
  EXPECT_EQ(message({.messages_json = "\xFF"}), "messages");
}

TEST(ChatTemplate, GivesToolCallsTheShapeThatTheTemplateTakes) {
  const ChatTemplate chat = compiled(
      "{% for m in messages %}{{ m.content }}{% for c in m.tool_calls or [] %}"
      "{% for k, v in c.function.arguments | items %}{{ k }}={{ v }};"
      "{% endfor %}{% endfor %}{% endfor %}");
  const auto text =
      chat.render({.messages_json = R"([{"role": "assistant", "content": null,
        "tool_calls": [{"function": {"name": "f",
        "arguments": "{\"b\": 1, \"a\": \"x\"}"}}]}])"});
  EXPECT_EQ(text.value_or("failed"), "b=1;a=x;");
}

TEST(ChatTemplate, StopsATemplateThatWouldNotEnd) {
  const ChatTemplate loops = compiled(
      "{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}"
      "{% endfor %}");
  const ChatTemplate calls =
      compiled("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}");
  EXPECT_FALSE(loops.render({.messages_json = "[]"}));
  EXPECT_FALSE(calls.render({.messages_json = "[]"}));
}

} // namespace
} // namespace sheave
