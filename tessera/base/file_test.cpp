#include "tessera/base/file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>

#include "tessera/base/text.h"

using namespace tessera;

namespace {

std::atomic<int> mask_changes = 0;

}  // namespace

/// In the place of the system's, to count who calls it.
extern "C" mode_t umask(mode_t mask) noexcept {
  ++mask_changes;
  return static_cast<mode_t>(syscall(SYS_umask, mask));
}

namespace {

class FileTest : public testing::Test {
 protected:
  FileTest()
      : folder_(cat(std::filesystem::temp_directory_path().string(), "/tessera_file_test_", getpid())) {
    std::filesystem::create_directories(folder_);
    mask_ = umask(0027);
  }
  ~FileTest() override {
    umask(mask_);
    std::filesystem::remove_all(folder_);
  }

  [[nodiscard]] std::string path(std::string_view name) const { return cat(folder_, "/", name); }
  static Result<void> write(const std::string& path, FileUsers users = FileUsers::as_usual) {
    const std::byte bytes[] = {std::byte{1}, std::byte{2}};
    const std::span<const std::byte> parts[] = {bytes};
    return write_file(path, parts, users);
  }
  static unsigned mode(const std::string& path) {
    struct stat info {};
    return stat(path.c_str(), &info) == 0 ? info.st_mode & 07777 : 0;
  }

 private:
  std::string folder_;
  mode_t mask_ = 0;
};

}  // namespace

TEST_F(FileTest, ANewFileIsForWhomTheMaskAllows) {
  ASSERT_TRUE(write(path("new")));
  EXPECT_EQ(mode(path("new")), 0640U);
  ASSERT_TRUE(write(path("own"), FileUsers::user_alone));
  EXPECT_EQ(mode(path("own")), 0600U);
}

TEST_F(FileTest, AFileThatIsReplacedKeepsItsUsers) {
  ASSERT_TRUE(write(path("old")));
  chmod(path("old").c_str(), 0664);
  ASSERT_TRUE(write(path("old")));
  EXPECT_EQ(mode(path("old")), 0664U);
  ASSERT_TRUE(write(path("old"), FileUsers::user_alone));
  EXPECT_EQ(mode(path("old")), 0600U);
}

// The mask belongs to the process: files that other threads make while it is another are not what they meant.
TEST_F(FileTest, WritingDoesNotTouchTheMask) {
  const int before = mask_changes;
  ASSERT_TRUE(write(path("new")));
  ASSERT_TRUE(write(path("new")));
  ASSERT_TRUE(write(path("new"), FileUsers::user_alone));
  EXPECT_EQ(mask_changes, before);
}
