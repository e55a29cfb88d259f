#include "tessera/runtime/memory_pool.h"

#include <gtest/gtest.h>

using namespace tessera;
using namespace tessera::runtime;

namespace {

constexpr std::size_t large = 5 * large_page_bytes + 100, small = large_page_bytes / 2;

std::byte* address_of_one(MemoryPool& pool, std::size_t bytes) {
  return value_or_throw(pool.allocate(bytes))->data();
}

}  // namespace

TEST(MemoryPool, LargeMemoryIsKeptForTheNextOfItsSize) {
  const auto pool = MemoryPool::create();
  std::byte* const first = address_of_one(*pool, large);
  EXPECT_EQ(pool->figures().used, 0U);
  EXPECT_EQ(pool->figures().kept, 6 * large_page_bytes);
  EXPECT_EQ(address_of_one(*pool, large + 7), first);
  EXPECT_EQ(pool->figures().kept, 6 * large_page_bytes);
  const auto held = value_or_throw(pool->allocate(large));
  EXPECT_EQ(held->data(), first);
  EXPECT_EQ(pool->figures().kept, 0U);
  EXPECT_NE(value_or_throw(pool->allocate(large))->data(), first) << "it is in use";
}

TEST(MemoryPool, SmallMemoryIsNotKept) {
  const auto pool = MemoryPool::create();
  address_of_one(*pool, small);
  EXPECT_EQ(pool->figures().kept, 0U);
}

// Sizes that are needed once do not pile up.
TEST(MemoryPool, WhatIsKeptAndUsedIsNeverMoreThanWhatWasUsed) {
  const auto pool = MemoryPool::create();
  for (std::size_t i = 1; i < 40; ++i) {
    address_of_one(*pool, i * large_page_bytes);
    const MemoryFigures figures = pool->figures();
    EXPECT_LE(figures.used + figures.kept, figures.peak) << i;
  }
}

TEST(MemoryPool, WhatIsKeptGivesWayToTheLimit) {
  const auto pool = MemoryPool::create();
  address_of_one(*pool, large);
  pool->set_limit(large + small);
  const auto other = value_or_throw(pool->allocate(3 * large_page_bytes));
  EXPECT_EQ(pool->figures().kept, 0U);
}

TEST(MemoryPool, MemoryOfTheProgramIsGivenBackAtOnce) {
  int given_back = 0;
  const auto pool = MemoryPool::create(
      {.allocate = [](std::size_t bytes) -> void* { return allocate_block(bytes).release(); },
       .free =
           [&](void* memory, std::size_t) {
             FreeMemory()(static_cast<std::byte*>(memory));
             ++given_back;
           }});
  address_of_one(*pool, large);
  EXPECT_EQ(given_back, 1);
  EXPECT_EQ(pool->figures().kept, 0U);
}
