#include "tessera/runtime/derived.h"

#include <gtest/gtest.h>

#include <thread>

#include "tessera/runtime/memory_pool.h"

using namespace tessera;
using namespace tessera::runtime;

namespace {

struct Form final : Derived {
  int number;
  std::size_t bytes;
  Form(int of, std::size_t size) : number(of), bytes(size) {}
  [[nodiscard]] std::size_t byte_size() const override { return bytes; }
};

struct OtherForm final : Derived {
  [[nodiscard]] std::size_t byte_size() const override { return 1; }
};

bool keep(DerivedSet& set, MemoryPool& pool, int number, std::size_t bytes = 100) {
  return set.keep(std::make_shared<Form>(number, bytes), pool);
}

bool has(const DerivedSet& set, int number) {
  return set.find<Form>([&](const Form& form) { return form.number == number; }) != nullptr;
}

void rest(MemoryPool& pool, std::uint64_t launches = DerivedSet::min_rest) {
  for (std::uint64_t i = 0; i < launches; ++i) pool.derived()->count_launch();
}

}  // namespace

TEST(DerivedSet, AllFormsAreLookedAt) {
  const auto pool = MemoryPool::create();
  DerivedSet set(100);
  EXPECT_TRUE(set.keep(std::make_shared<OtherForm>(), *pool));
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(keep(set, *pool, i));
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(has(set, i));
  EXPECT_FALSE(has(set, 3));
  EXPECT_EQ(pool->figures().derived, 301U);
  set.clear();
  EXPECT_FALSE(has(set, 0));
  EXPECT_EQ(pool->figures().derived, 0U);
}

TEST(DerivedSet, FormsOfOneContentAreBounded) {
  const auto pool = MemoryPool::create();
  DerivedSet set(100);
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(keep(set, *pool, i));
  EXPECT_FALSE(set.has_room(100, *pool)) << "all were used just now";
  EXPECT_FALSE(keep(set, *pool, 4));
  rest(*pool, 1);
  pool->derived()->note_use(*set.find<Form>([](const Form& form) { return form.number == 0; }));
  rest(*pool, DerivedSet::min_rest - 1);
  EXPECT_TRUE(keep(set, *pool, 4));
  EXPECT_TRUE(has(set, 0));
  EXPECT_FALSE(has(set, 1)) << "it was not used for the longest time";
  EXPECT_EQ(pool->figures().derived, 400U);
  EXPECT_TRUE(DerivedSet(1).has_room(1000, *pool)) << "the first of any size fits";
}

TEST(DerivedSet, ManySmallPartsOfOneContentAreForms) {
  const auto pool = MemoryPool::create();
  DerivedSet set(4800);
  for (int i = 0; i < 48; ++i) EXPECT_TRUE(keep(set, *pool, i));
  for (int i = 0; i < 48; ++i) EXPECT_TRUE(has(set, i));
}

TEST(DerivedSet, FormsGiveWayToBuffersUnlessTheyAreInUse) {
  const auto pool = MemoryPool::create();
  pool->set_limit(1000);
  DerivedSet first(400), second(400);
  EXPECT_TRUE(keep(first, *pool, 1, 400));
  rest(*pool, 1);
  EXPECT_TRUE(keep(second, *pool, 2, 400));
  const auto buffer = value_or_throw(pool->allocate(600));
  EXPECT_FALSE(has(first, 1)) << "it is the older";
  EXPECT_TRUE(has(second, 2));
  const auto used = second.find<Form>([](const Form&) { return true; });
  const auto refused = pool->allocate(200);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message(),
            "a buffer of 200 bytes would pass the memory limit: 1000 of 1000 bytes are in use");
  EXPECT_TRUE(has(second, 2));
  EXPECT_EQ(pool->figures().used, 600U);
}

TEST(DerivedSet, WhatRestsGivesWayToOtherForms) {
  const auto pool = MemoryPool::create();
  pool->set_limit(1000);
  DerivedSet first(600), second(600);
  EXPECT_TRUE(keep(first, *pool, 1, 600));
  EXPECT_FALSE(second.has_room(600, *pool));
  EXPECT_FALSE(keep(second, *pool, 2, 600)) << "each would be made in every launch";
  EXPECT_TRUE(has(first, 1));
  rest(*pool);
  EXPECT_TRUE(keep(second, *pool, 2, 600));
  EXPECT_FALSE(has(first, 1));
  EXPECT_EQ(pool->figures().derived, 600U);
}

TEST(DerivedSet, GoesWithItsBufferAndWithItsContents) {
  const auto pool = MemoryPool::create();
  auto buffer = value_or_throw(pool->allocate(100));
  EXPECT_TRUE(keep(buffer->derived(), *pool, 1));
  buffer->begin_write();
  EXPECT_FALSE(has(buffer->derived(), 1));
  EXPECT_TRUE(keep(buffer->derived(), *pool, 2));
  buffer = {};
  EXPECT_EQ(pool->figures().derived, 0U);
}

// Weights of a file are constants that two engines read: each counts what was made for it.
TEST(DerivedSet, IsSharedByPoolsAndOutlivesThem) {
  const float numbers[4] = {};
  const auto constant = Buffer::wrap_constant(numbers, sizeof numbers, {});
  const auto first = MemoryPool::create();
  auto second = MemoryPool::create();
  EXPECT_TRUE(keep(constant->derived(), *first, 1));
  EXPECT_TRUE(keep(constant->derived(), *second, 2));
  EXPECT_EQ(first->figures().derived, 100U);
  EXPECT_EQ(second->figures().derived, 100U);
  second = nullptr;
  EXPECT_TRUE(has(constant->derived(), 1) && has(constant->derived(), 2));
  constant->derived().clear();
  EXPECT_EQ(first->figures().derived, 0U);
}

TEST(DerivedSet, ThreadsMayKeepFindAndGiveUp) {
  const auto pool = MemoryPool::create();
  pool->set_limit(2000);
  std::vector<std::unique_ptr<DerivedSet>> sets;
  for (int s = 0; s < 8; ++s) sets.push_back(std::make_unique<DerivedSet>(1000));
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 2000; ++i) {
        DerivedSet& set = *sets[static_cast<std::size_t>((i * 7 + t) % 8)];
        const int number = i % 16;
        if (const auto found = set.find<Form>([&](const Form& form) { return form.number == number; }))
          EXPECT_EQ(found->number, number);
        else
          (void)keep(set, *pool, number);
        pool->derived()->count_launch();
        if (i % 10 == 0) (void)pool->allocate(1500);
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(pool->figures().derived, 2000U);
  std::uint64_t counted = 0;
  for (const auto& set : sets) counted += set->size() * 100;
  EXPECT_EQ(pool->figures().derived, counted);
  sets.clear();
  EXPECT_EQ(pool->figures().derived, 0U);
}
