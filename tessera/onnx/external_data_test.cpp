#include "tessera/onnx/external_data.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tessera/base/text.h"

using namespace tessera;
namespace fs = std::filesystem;

namespace {

class ExternalData : public testing::Test {
 protected:
  ExternalData() : folder_(fs::temp_directory_path() / cat("tessera_external_test_", getpid())) {
    fs::create_directories(folder_);
    write("weights", "right");
    write("secret", "wrong");
  }
  ~ExternalData() override { fs::remove_all(folder_); }

  [[nodiscard]] std::string at(std::string_view name) const { return folder_ / name; }
  void write(std::string_view name, std::string_view text) const { std::ofstream(at(name)) << text; }
  [[nodiscard]] onnx::ExternalFiles files() const {
    return onnx::ExternalFiles(value_or_throw(BaseFolder::of(at("model.onnx"))));
  }

  fs::path folder_;
};

/// The bytes, or the message of the error.
std::string read(onnx::ExternalFiles& files, const std::string& location, std::int64_t offset = 0,
                 std::int64_t length = -1) {
  const auto bytes = files.read({location, offset, length});
  if (!bytes) return bytes.error().message();
  return {reinterpret_cast<const char*>(bytes->data()), bytes->size()};
}

}  // namespace

/// The second tensor of a file is of what the file was for the first.
TEST_F(ExternalData, Trap_U20_AFileThatIsSwappedForALinkWasOpenedOnce) {
  onnx::ExternalFiles all = files();
  EXPECT_EQ(read(all, "weights", 0, 2), "ri");
  fs::remove(at("weights"));
  fs::create_symlink("secret", at("weights"));
  EXPECT_EQ(read(all, "weights", 2), "ght");
  onnx::ExternalFiles later = files();
  EXPECT_EQ(read(later, "weights"), "external data 'weights' is or goes through a symbolic link");
}

TEST_F(ExternalData, Trap_U20_TheFolderIsTheOneTheModelWasIn) {
  onnx::ExternalFiles all = files();
  const fs::path moved = folder_.string() + "_moved";
  fs::rename(folder_, moved);
  fs::create_directory(folder_);
  write("weights", "wrong");
  EXPECT_EQ(read(all, "weights"), "right");
  fs::remove_all(moved);
}

TEST_F(ExternalData, HasNoOtherNameAndIsLargeEnough) {
  onnx::ExternalFiles all = files();
  EXPECT_EQ(read(all, "weights", 3, 3), "external data 'weights' has 5 bytes, too few for 3 from 3 on");
  EXPECT_EQ(read(all, "../secret"),
            "external data '../secret' is no path inside the folder of the file that names it");
  fs::create_hard_link(at("secret"), at("other"));
  EXPECT_EQ(read(all, "other"), "external data 'other' has several hard links");
  onnx::ExternalFiles none{std::nullopt};
  EXPECT_EQ(read(none, "weights"), "external data 'weights' cannot be read: the model has no folder");
}
