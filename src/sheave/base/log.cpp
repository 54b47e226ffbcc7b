#include "sheave/base/log.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <cstdlib>
#include <memory>

namespace sheave {
namespace {

std::shared_ptr<spdlog::logger> make_logger() {
  auto logger = std::make_shared<spdlog::logger>(
      "sheave",
      std::make_shared<spdlog::sinks::stderr_sink_mt>());
  logger->set_pattern("%H:%M:%S.%e %l %v");
  const char* level = std::getenv("SHEAVE_LOG");
  logger->set_level(
      level == nullptr ? spdlog::level::warn : spdlog::level::from_str(level));
  return logger;
}

spdlog::logger& logger() {
  static const std::shared_ptr<spdlog::logger> instance = make_logger();
  return *instance;
}

} // namespace

void log_debug(std::string_view message) {
  logger().debug(message);
}

void log_info(std::string_view message) {
  logger().info(message);
}

void log_warn(std::string_view message) {
  logger().warn(message);
}

void log_error(std::string_view message) {
  logger().error(message);
}

} // namespace sheave
