#include "sheave/weights/mapped_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sheave/weights/weights_test_support.h"

namespace sheave {
namespace {

std::string error_of(const std::filesystem::path& path) {
  return file_error_of([&] { MappedFile::open(path); });
}

TEST(MappedFile, ShowsTheFilesBytes) {
  const TemporaryFolder folder;
  const auto file = MappedFile::open(folder.write("a", "some bytes"));
  const auto bytes = file->bytes();
  EXPECT_EQ(std::string(bytes.begin(), bytes.end()), "some bytes");
}

TEST(MappedFile, KeepsItsBytesWhenTheFileIsDeleted) {
  const TemporaryFolder folder;
  const auto path = folder.write("a", "some bytes");
  const auto file = MappedFile::open(path);
  std::filesystem::remove(path);
  EXPECT_EQ(file->bytes()[0], 's');
}

TEST(MappedFile, NamesWhatCannotBeMapped) {
  const TemporaryFolder folder;
  EXPECT_TRUE(contains(
      error_of(folder.path() / "none"),
      "none: can't be opened: No such file or directory"));
  EXPECT_TRUE(contains(error_of(folder.path()), ": is not a regular file"));
  EXPECT_TRUE(contains(error_of(folder.write("empty", "")), "empty: is empty"));
  EXPECT_TRUE(
      contains(error_of("/dev/zero"), "/dev/zero: is not a regular file"));
}

TEST(MappedFile, DoesNotWaitForAPipesWriter) {
  const TemporaryFolder folder;
  const auto pipe = folder.path() / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_TRUE(contains(error_of(pipe), "pipe: is not a regular file"));
}

TEST(MappedFile, NamesAFileThatMayNotBeRead) {
  if (geteuid() == 0) {
    GTEST_SKIP() << "root may read every file";
  }
  const TemporaryFolder folder;
  const auto path = folder.write("secret", "x");
  std::filesystem::permissions(path, std::filesystem::perms::none);
  EXPECT_TRUE(
      contains(error_of(path), "secret: can't be opened: Permission denied"));
}

} // namespace
} // namespace sheave
