#include "tessera/runtime/cuda/cell_table.h"

#include <gtest/gtest.h>

#include <bit>

using namespace tessera;
using namespace tessera::runtime::cuda;
using ir::Dtype;

namespace {

using Change = CellTable::Change;

std::uint64_t wide_bits(double value) { return std::bit_cast<std::uint64_t>(value); }
std::uint64_t f32_bits(float value) { return std::bit_cast<std::uint32_t>(value); }

/// Three numbers, of which kernels read the second twice, once as an f64; two cells of sizes stand between.
struct Three {
  Three() {
    plan.parameters = {Dtype::f32, Dtype::f32, Dtype::i64};
    program.reads_cells = true;
    program.sizes = {7, 8};
    program.number_cells = {{0, Dtype::f32}, {1, Dtype::f32}, {2, Dtype::i64}, {1, Dtype::f64}};
  }

  plan::Plan plan;
  PlanProgram program;
};
constexpr std::size_t first_number = 5;  ///< behind parameters and sizes

/// As if the device had been given it.
Change taken_over(CellTable& table, const std::vector<std::uint64_t>& numbers) {
  const Change out = table.follow(numbers);
  table.note_copied();
  return out;
}

}  // namespace

TEST(CellTable, IsCopiedAsAWholeFirst) {
  const Three three;
  CellTable table(three.plan, three.program);
  EXPECT_EQ(table.follow(std::vector{wide_bits(1.5), wide_bits(0.1), std::uint64_t{4}}), (Change{0, 9}));
  const auto cells = table.cells();
  EXPECT_EQ(cells[3], 7u);
  EXPECT_EQ(cells[4], 8u);
  EXPECT_EQ(cells[first_number], f32_bits(1.5f));
  EXPECT_EQ(cells[first_number + 1], f32_bits(0.1f));
  EXPECT_EQ(cells[first_number + 2], 4u);
  EXPECT_EQ(cells[first_number + 3], wide_bits(0.1f)) << "rounded to the dtype of the parameter";
}

TEST(CellTable, TellsTheCellsOfNumbersThatChanged) {
  const Three three;
  CellTable table(three.plan, three.program);
  taken_over(table, {wide_bits(1), wide_bits(2), 3});
  EXPECT_TRUE(taken_over(table, {wide_bits(1), wide_bits(2), 3}).is_empty());
  EXPECT_EQ(taken_over(table, {wide_bits(1), wide_bits(2), 5}), (Change{first_number + 2, first_number + 3}));
  EXPECT_EQ(taken_over(table, {wide_bits(1), wide_bits(4), 5}), (Change{first_number + 1, first_number + 4}));
  EXPECT_EQ(taken_over(table, {wide_bits(0), wide_bits(4), 6}), (Change{first_number, first_number + 4}));
  EXPECT_EQ(table.cells()[first_number], f32_bits(0));
  EXPECT_EQ(table.cells()[first_number + 3], wide_bits(4));
}

TEST(CellTable, TellsAChangeAgainIfItWasNotCopied) {
  const Three three;
  CellTable table(three.plan, three.program);
  taken_over(table, {wide_bits(1), wide_bits(2), 3});
  EXPECT_FALSE(table.follow(std::vector{wide_bits(9), wide_bits(2), std::uint64_t{3}}).is_empty());
  EXPECT_EQ(taken_over(table, {wide_bits(9), wide_bits(2), 3}), (Change{0, 9})) << "the copy failed";
  EXPECT_TRUE(taken_over(table, {wide_bits(9), wide_bits(2), 3}).is_empty());
}

TEST(CellTable, HoldsParametersAsArraysWhereTheyAreRead) {
  Three three;
  three.program.reads_parameters = true;
  CellTable table(three.plan, three.program);
  taken_over(table, {wide_bits(1.5), wide_bits(2), 3});
  EXPECT_EQ(table.cells()[0], f32_bits(1.5f));
  EXPECT_EQ(table.cells()[2], 3u);
  EXPECT_EQ(taken_over(table, {wide_bits(2.5), wide_bits(2), 3}), (Change{0, first_number + 1}));
  EXPECT_EQ(table.cells()[0], f32_bits(2.5f));
}

TEST(CellTable, OfSizesAloneIsCopiedOnce) {
  PlanProgram program;
  program.reads_cells = true;
  program.sizes = {7};
  CellTable table(plan::Plan(), program);
  EXPECT_EQ(taken_over(table, {}), (Change{0, 1}));
  EXPECT_TRUE(taken_over(table, {}).is_empty());
}

TEST(CellTable, ThatNobodyReadsIsNotCopied) {
  Three three;
  three.program.reads_cells = false;
  CellTable table(three.plan, three.program);
  EXPECT_TRUE(table.follow(std::vector{wide_bits(1), wide_bits(2), std::uint64_t{3}}).is_empty());
}
