#include "tessera/base/shared_library.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tessera/base/environment.h"
#include "tessera/base/text.h"

using namespace tessera;

namespace {

/// A variable of the environment, as it was at the end.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) {
    if (const char* before = environment(name)) before_ = before;
    ::setenv(name, value.c_str(), 1);
  }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;
  ~Variable() { before_.empty() ? ::unsetenv(name_) : ::setenv(name_, before_.c_str(), 1); }

 private:
  const char* name_;
  std::string before_;
};

/// The folder of the math library, which every program in C++ has loaded.
std::string math_library() {
  Dl_info found{};
  void* handle = ::dlopen("libm.so.6", RTLD_NOW | RTLD_LOCAL);
  return handle != nullptr && ::dladdr(::dlsym(handle, "cos"), &found) != 0 ? found.dli_fname : "";
}

class SharedLibraryTest : public testing::Test {
 protected:
  SharedLibraryTest()
      : folder_(cat(std::filesystem::temp_directory_path().string(), "/tessera_library_test_", getpid())) {
    std::filesystem::create_directories(folder_);
  }
  ~SharedLibraryTest() override { std::filesystem::remove_all(folder_); }

  static bool opens(const char* file) { return bool(SharedLibrary::open("it", std::span(&file, 1))); }

  std::string folder_;
};

}  // namespace

TEST(Environment, GivesWhatIsSet) {
  EXPECT_EQ(environment("TESSERA_NO_SUCH_VARIABLE"), nullptr);
  const Variable variable("TESSERA_TEST_VARIABLE", "a value");
  EXPECT_STREQ(environment("TESSERA_TEST_VARIABLE"), "a value");
}

TEST_F(SharedLibraryTest, OpensWhatTheSystemHas) {
  const char* const files[] = {"libno_such_library.so.1", "libm.so.6"};
  const auto library = SharedLibrary::open("mathematics", files);
  ASSERT_TRUE(library) << library.error().to_text();
  EXPECT_EQ(library->file(), "libm.so.6");
  double (*cosine)(double) = nullptr;
  int (*none)() = nullptr;
  std::string missing;
  library->find(cosine, "cos", missing);
  library->find(none, "no_such_function", missing);
  EXPECT_EQ(missing, " no_such_function");
  ASSERT_NE(cosine, nullptr);
  EXPECT_EQ(cosine(0.0), 1.0);
}

TEST_F(SharedLibraryTest, SaysWhatWasTried) {
  const char* const files[] = {"libno_a.so", "libno_b.so"};
  const auto library = SharedLibrary::open("the best of all", files);
  ASSERT_FALSE(library);
  EXPECT_EQ(library.error().message(),
            "the best of all is not on this system (tried libno_a.so, libno_b.so)");
}

TEST_F(SharedLibraryTest, LooksInTheFoldersOfTheVariables) {
  std::filesystem::copy_file(math_library(), folder_ + "/libtessera_copy.so");
  EXPECT_FALSE(opens("libtessera_copy.so"));
  {
    const Variable variable("LD_LIBRARY_PATH", cat("/no/such/folder:", folder_));
    EXPECT_TRUE(opens("libtessera_copy.so"));
  }
  std::filesystem::copy_file(math_library(), folder_ + "/libtessera_other.so");
  const Variable variable("TESSERA_LIBRARY_PATH", folder_ + "/");
  EXPECT_TRUE(opens("libtessera_other.so"));
}

TEST_F(SharedLibraryTest, NeverLooksInTheWorkingDirectory) {
  std::filesystem::copy_file(math_library(), folder_ + "/libtessera_here.so");
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(folder_);
  for (const char* path : {"", ":", ".", "./", ":/no/such/folder:."}) {
    const Variable loader("LD_LIBRARY_PATH", path);
    const Variable ours("TESSERA_LIBRARY_PATH", path);
    EXPECT_FALSE(opens("libtessera_here.so")) << path;
    for (const std::string& folder : library_folders()) EXPECT_EQ(folder.front(), '/') << folder;
  }
  std::filesystem::current_path(before);
}

TEST_F(SharedLibraryTest, WhatIsNoLibraryIsPassedOverWithItsReason) {
  std::filesystem::create_directory(folder_ + "/libtessera_folder.so");
  const Variable variable("TESSERA_LIBRARY_PATH", folder_);
  const char* const file = "libtessera_folder.so";
  const auto library = SharedLibrary::open("it", std::span(&file, 1));
  ASSERT_FALSE(library);
  EXPECT_NE(library.error().message().find("libtessera_folder.so, which cannot be loaded: "),
            std::string::npos)
      << library.error().message();
}

TEST_F(SharedLibraryTest, WhatCannotBeLoadedHidesWhatLaterFoldersHaveOfItsName) {
  const std::string first = folder_ + "/first";
  const std::string second = folder_ + "/second";
  std::filesystem::create_directories(first);
  std::filesystem::create_directories(second);
  std::ofstream(first + "/libtessera_hidden.so") << "no library";
  std::filesystem::copy_file(math_library(), second + "/libtessera_hidden.so");
  const Variable both("TESSERA_LIBRARY_PATH", cat(first, ":", second));
  EXPECT_FALSE(opens("libtessera_hidden.so"));
  const Variable one("TESSERA_LIBRARY_PATH", second);
  EXPECT_TRUE(opens("libtessera_hidden.so"));
}

TEST_F(SharedLibraryTest, TheToolkitGoesBeforeTheSystem) {
  const char* const toolkit[] = {"/usr/local/cuda/lib64/"};
  const auto folders = library_folders(toolkit);
  const auto first = std::ranges::find(folders, "/usr/local/cuda/lib64");
  const auto second = std::ranges::find(folders, "/usr/lib");
  EXPECT_LT(first, second);
  EXPECT_NE(second, folders.end());
}
