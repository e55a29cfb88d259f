// What a file names is found below a folder and through no link, wherever somebody puts one meanwhile.
#include "tessera/base/open_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <thread>

#include "tessera/base/file.h"
#include "tessera/base/text.h"
#include "tests/support/repeats.h"

using namespace tessera;
namespace fs = std::filesystem;

namespace {

class OpenFileTest : public testing::Test {
 protected:
  OpenFileTest() : folder_(fs::temp_directory_path() / cat("tessera_open_file_test_", getpid())) {
    fs::create_directories(folder_ / "model/inner");
    write("model/weights", "right");
    write("model/inner/weights", "inner");
    write("secret", "wrong");
    fs::create_symlink("../secret", folder_ / "model/link");
    fs::create_symlink("inner", folder_ / "model/folder_link");
    fs::create_symlink("nowhere", folder_ / "model/broken_link");
  }
  ~OpenFileTest() override { fs::remove_all(folder_); }

  [[nodiscard]] std::string at(std::string_view name) const { return folder_ / name; }
  void write(std::string_view name, std::string_view text) const { std::ofstream(at(name)) << text; }
  [[nodiscard]] BaseFolder base() const { return value_or_throw(BaseFolder::of(at("model/model.onnx"))); }

 private:
  fs::path folder_;
};

/// The content, or what the error says behind the path.
std::string content_of(const Result<OpenFile>& file) {
  if (!file) {
    const std::string message = file.error().message();
    return message.substr(message.rfind('\'') + 2);
  }
  std::string out(static_cast<std::size_t>(file->size()), '\0');
  return file->read(std::as_writable_bytes(std::span(out))) ? out : "cannot be read";
}

struct Case {
  const char* path;
  const char* content;
};
constexpr const char* elsewhere = "is no path inside the folder of the file that names it";
constexpr const char* linked = "is or goes through a symbolic link";
constexpr Case cases[] = {{"weights", "right"},
                          {"inner/weights", "inner"},
                          {"link", linked},
                          {"broken_link", linked},
                          {"folder_link/weights", linked},
                          {"absent", "cannot be found"},
                          {"absent/weights", "cannot be found"},
                          {"weights/weights", "cannot be found"},
                          {"inner", "is no regular file"},
                          {"/etc/passwd", elsewhere},
                          {"../secret", elsewhere},
                          {"inner/../weights", elsewhere},
                          {"./weights", elsewhere},
                          {"inner//weights", elsewhere},
                          {"inner/", elsewhere},
                          {"", elsewhere},
                          {"..\\secret", elsewhere}};

/// What a process says that openat2 fails in with this error; 77 if the system lets us not try that.
template <class F>
int without_openat2(int error, F&& f) {
  const pid_t child = fork();
  if (child == 0) {
    sock_filter filter[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                            BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
                            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | static_cast<unsigned>(error)),
                            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    const sock_fprog program{.len = std::size(filter), .filter = filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0 ||
        syscall(SYS_openat2, AT_FDCWD, ".", nullptr, 0) != -1 || errno != error)
      _exit(77);
    _exit(f());
  }
  int status = 1;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

}  // namespace

TEST_F(OpenFileTest, Trap_U20_WhatAFileNamesIsReachedThroughNoLink) {
  for (const Case& one : cases) EXPECT_EQ(content_of(base().open(one.path)), one.content) << one.path;
  EXPECT_EQ(content_of(base().open(std::string("weights\0", 8))), elsewhere);
}

TEST_F(OpenFileTest, Trap_U20_AlsoWithoutOpenat2) {
  for (const int error : {ENOSYS, EPERM}) {
    const int wrong = without_openat2(error, [&] {
      int out = 0;
      for (const Case& one : cases)
        if (const std::string got = content_of(base().open(one.path)); got != one.content) {
          std::fprintf(stderr, "%s: %s\n", one.path, got.c_str());
          ++out;
        }
      return out;
    });
    if (wrong == 77) GTEST_SKIP() << "the system filters no calls";
    EXPECT_EQ(wrong, 0);
  }
}

/// Whoever looks at a path first and opens it then reads what he must not, sooner or later.
TEST_F(OpenFileTest, Trap_U20_ALinkThatTakesThePlaceOfAFileIsNotFollowed) {
  std::atomic<bool> is_over{false};
  std::thread other([&] {
    while (!is_over) {
      fs::create_symlink("../secret", at("model/next"));
      fs::rename(at("model/next"), at("model/weights"));
      write("model/next", "right");
      fs::rename(at("model/next"), at("model/weights"));
    }
  });
  const BaseFolder folder = base();
  int right = 0, refused = 0;
  for (int i = 0; i < fixture::repeats(20'000); ++i) {
    const std::string content = content_of(folder.open("weights"));
    right += content == "right";
    refused += content == linked;
    if (content != "right" && content != linked) ADD_FAILURE() << content;
  }
  is_over = true;
  other.join();
  EXPECT_GT(right + refused, 0);
}

TEST_F(OpenFileTest, Trap_U20_AFolderThatIsHeldStaysTheSame) {
  const BaseFolder folder = base();
  fs::rename(at("model"), at("moved"));
  fs::create_directory(at("other"));
  write("other/weights", "wrong");
  fs::create_symlink("other", at("model"));
  EXPECT_EQ(content_of(folder.open("weights")), "right");
}

TEST_F(OpenFileTest, WhatTheUserNamesMayBeALink) {
  EXPECT_EQ(content_of(OpenFile::open(at("model/link"))), "wrong");
  EXPECT_EQ(content_of(OpenFile::open(at("model/folder_link/weights"))), "inner");
  EXPECT_EQ(value_or_throw(map_file(at("model/link"))).size(), 5U);
  const BaseFolder linked_base = value_or_throw(BaseFolder::of(at("model/folder_link/model.onnx")));
  EXPECT_EQ(content_of(linked_base.open("weights")), "inner");
  const auto folder = OpenFile::open(at("model"));
  ASSERT_FALSE(folder);
  EXPECT_NE(folder.error().message().find("it is no regular file"), std::string::npos);
}
