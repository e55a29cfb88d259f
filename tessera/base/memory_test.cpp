#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "tessera/base/arena.h"
#include "tessera/base/checked.h"
#include "tessera/base/slot_memory.h"
#include "tessera/base/small_vector.h"

using namespace tessera;

namespace {

TEST(SmallVector, GrowsPastItsInlineStorageAndKeepsItsElements) {
  SmallVector<std::string, 2> v;
  for (int i = 0; i < 100; ++i) v.push_back(std::string(40, static_cast<char>('a' + i % 26)));
  ASSERT_EQ(v.size(), 100u);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(v[static_cast<std::size_t>(i)][0], 'a' + i % 26);
}

TEST(SmallVector, MovesInlineAndHeapContents) {
  for (std::size_t count : {0u, 1u, 2u, 3u, 50u}) {
    SmallVector<std::unique_ptr<int>, 2> from;
    for (std::size_t i = 0; i < count; ++i) from.emplace_back(std::make_unique<int>(static_cast<int>(i)));
    SmallVector<std::unique_ptr<int>, 2> to = std::move(from);
    EXPECT_TRUE(from.empty());
    from.emplace_back(std::make_unique<int>(7));
    ASSERT_EQ(to.size(), count);
    for (std::size_t i = 0; i < count; ++i) EXPECT_EQ(*to[i], static_cast<int>(i));
  }
}

TEST(SmallVector, AnElementOfItselfCanBePushedWhileItGrows) {
  SmallVector<std::string, 1> v{"a long string that does not fit the small buffer"};
  v.push_back(v[0]);
  v.emplace_back(v[1]);
  EXPECT_EQ(v[0], v[2]);
}

TEST(SmallVector, InsertsAndErasesInTheMiddle) {
  SmallVector<int, 4> v{1, 2, 4};
  v.insert(v.begin() + 2, 3);
  EXPECT_EQ(v, (SmallVector<int, 4>{1, 2, 3, 4}));
  v.erase(v.begin());
  EXPECT_EQ(v, (SmallVector<int, 4>{2, 3, 4}));
  v.resize(1);
  EXPECT_EQ(v, (SmallVector<int, 4>{2}));
}

TEST(Arena, KeepsObjectsApartAndAligned) {
  Arena arena(128);
  double* last = nullptr;
  for (int i = 1; i < 200; ++i) {
    (void)arena.make_array<char>(static_cast<std::size_t>(i % 7));
    auto values = arena.make_array<double>(3);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(values.data()) % alignof(double), 0u);
    EXPECT_EQ(values[0], 0.0);
    values[2] = i;
    EXPECT_EQ(last == nullptr ? 0 : *last, i - 1);
    last = &values[2];
  }
  EXPECT_EQ(arena.make_array<int>(100000).size(), 100000u);
  arena.clear();
  EXPECT_EQ(arena.reserved_bytes(), 0u);
}

TEST(SlotMemory, KeepsObjectsApartAndAligned) {
  struct Object {
    std::byte* memory;
    std::size_t bytes;
  };
  std::vector<Object> objects;
  for (int i = 0; i < 8; ++i)
    for (std::size_t bytes = 1; bytes <= 640; ++bytes) {
      auto* memory = static_cast<std::byte*>(SlotMemory::allocate(bytes));
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory) % (bytes % 64 == 0 ? 64 : 16), 0u) << bytes;
      objects.push_back({memory, bytes});
    }
  std::sort(objects.begin(), objects.end(),
            [](const Object& a, const Object& b) { return a.memory < b.memory; });
  for (std::size_t i = 1; i < objects.size(); ++i)
    EXPECT_GE(objects[i].memory, objects[i - 1].memory + objects[i - 1].bytes);
  for (const Object& object : objects) SlotMemory::free(object.memory, object.bytes);
}

/// Sizes of this test alone, so that what others left does not matter.
constexpr std::size_t odd_size = 496;

/// Slots that a thread gives back when most of it has ended.
struct LateSlots {
  ~LateSlots() {
    for (void* slot : slots) SlotMemory::free(slot, odd_size);
    SlotMemory::free(SlotMemory::allocate(odd_size), odd_size);
  }
  std::vector<void*> slots;
};
thread_local LateSlots late_slots;

TEST(SlotMemory, Trap_U6_SlotsAreUsedAgainWhateverThreadsDoWithThem) {
  if (TESSERA_SLOT_MEMORY == 0) GTEST_SKIP() << "slots come from the heap";
  std::set<void*> seen;
  for (int round = 0; round < 400; ++round) {
    std::array<void*, 50> taken;
    for (void*& slot : taken) seen.insert(slot = SlotMemory::allocate(odd_size));
    std::thread([&] {
      late_slots.slots.assign(taken.begin(), taken.begin() + 25);  // made before this thread has a slot
      for (std::size_t i = 25; i < taken.size(); ++i) SlotMemory::free(taken[i], odd_size);
      std::thread([] { SlotMemory::free(SlotMemory::allocate(odd_size), odd_size); }).join();
    }).join();
  }
  EXPECT_LT(seen.size(), 500u);
}

TEST(Checked, NoticesOverflow) {
  constexpr auto max = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(checked_mul<std::int64_t>(1LL << 32, 1LL << 31), std::nullopt);
  EXPECT_EQ(checked_add<std::int64_t>(max, 1), std::nullopt);
  EXPECT_EQ(checked_sub<std::int64_t>(-2, max), std::nullopt);
  const std::int64_t big[] = {65536, 65536, 65536};
  EXPECT_EQ(checked_product(big), 1LL << 48);
  const std::int64_t too_big[] = {1LL << 32, 1LL << 32};
  EXPECT_EQ(checked_product(too_big), std::nullopt);
  const std::int64_t empty[] = {1LL << 40, 1LL << 40, 0};
  EXPECT_EQ(checked_product(empty), 0);
}

TEST(Checked, FloorDivisionAndRemainderAgree) {
  for (std::int64_t a : {-7, -6, -1, 0, 1, 6, 7})
    for (std::int64_t b : {-3, -1, 1, 3}) {
      EXPECT_EQ(floor_div(a, b) * b + floor_mod(a, b), a) << a << " / " << b;
      EXPECT_TRUE(floor_mod(a, b) == 0 || (floor_mod(a, b) < 0) == (b < 0));
    }
  constexpr auto min = std::numeric_limits<std::int64_t>::min();
  EXPECT_EQ(floor_div(min, -1), min);
  EXPECT_EQ(floor_mod(min, -1), 0);
}

}  // namespace
