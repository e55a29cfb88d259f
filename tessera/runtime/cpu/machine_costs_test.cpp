#include "tessera/runtime/cpu/machine_costs.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

using namespace tessera;
using namespace tessera::runtime::cpu;

namespace {

const MachineCosts measured{.begin_ns = 120.5,
                            .element_ns = 0.03,
                            .product_ns = 0.009,
                            .reference_ns = 3,
                            .byte_ns = 0.021,
                            .operation_ns = 0.008};

class CostStoreTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = (std::filesystem::temp_directory_path() / "tessera_costs_XXXXXX").string();
    ASSERT_NE(mkdtemp(folder_.data()), nullptr);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string folder_;
};

}  // namespace

TEST(MachineCosts, AreReadAsTheyWereWritten) {
  EXPECT_EQ(*parse_costs(to_text(measured)), measured);
  EXPECT_EQ(*parse_costs(to_text(MachineCosts())), MachineCosts());
}

TEST(MachineCosts, TextThatIsNoneIsAnErrorWithItsLine) {
  const std::string right = to_text(measured);
  EXPECT_FALSE(parse_costs(""));
  EXPECT_FALSE(parse_costs(right.substr(0, right.size() / 2)));
  EXPECT_FALSE(parse_costs(right + "byte_ns 1\n"));
  for (const char* number : {"0", "-1", "nan", "inf", "1e300", "1 2", "x", ""}) {
    std::string text = right;
    text.replace(0, text.find('\n'), std::string("begin_ns ") + number);
    const auto costs = parse_costs(text);
    ASSERT_FALSE(costs) << number;
    EXPECT_NE(costs.error().message().find("begin_ns"), std::string::npos) << costs.error().message();
  }
}

TEST_F(CostStoreTest, KeepsOneMeasurementPerNumberOfThreads) {
  const CostStore store(folder_);
  EXPECT_EQ(*store.load(2), std::nullopt);
  ASSERT_TRUE(store.save(2, measured));
  EXPECT_EQ(*store.load(2), measured);
  EXPECT_EQ(*store.load(1), std::nullopt);
  ASSERT_TRUE(store.save(2, {}));
  EXPECT_EQ(*store.load(2), MachineCosts());
}

TEST_F(CostStoreTest, DoesNotBelieveWhatIsDamagedOrOfAnotherMachine) {
  const CostStore store(folder_);
  ASSERT_TRUE(store.save(2, measured));
  std::filesystem::copy(store.path_of(2), store.path_of(3));
  const auto foreign = store.load(3);
  ASSERT_FALSE(foreign);
  EXPECT_NE(foreign.error().message().find("of another machine"), std::string::npos);
  std::filesystem::resize_file(store.path_of(2), 40);
  EXPECT_FALSE(store.load(2));
  EXPECT_EQ(*CostStore("").load(2), std::nullopt) << "there is no folder";
}
