#include "tessera/stream/encoding.h"

#include <bit>
#include <cstring>

#include "tessera/stream/mix.h"

using namespace tessera;
using namespace tessera::stream;

namespace {

enum Domain : std::uint64_t { domain_skeleton = 0x5e1e70, domain_sizes = 0x512e5 };

template <class T>
bool same_words(std::span<const T> a, std::span<const T> b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size_bytes()) == 0);
}

/// Both halves of a 128-bit product, joined.
std::uint64_t fold(std::uint64_t x, std::uint64_t y) {
  __extension__ using Wide = unsigned __int128;
  const Wide product = static_cast<Wide>(x) * y;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

/// One of the streams of words that are hashed side by side, so that the processor works on all of them at a
/// time. Takes two words for two products.
struct HashLane {
  std::uint64_t a;
  std::uint64_t b;

  void add(std::uint64_t x, std::uint64_t y) {
    a = fold(a ^ x, 0x9e3779b97f4a7c15ULL ^ y) + x;
    b = fold(b + y, 0xc2b2ae3d27d4eb4fULL ^ x) + std::rotl(a, 29);
  }
};

Hash128 hash_words(Domain domain, std::size_t count, auto&& word_at) {
  constexpr std::size_t lane_count = 4;
  HashLane lanes[lane_count];
  for (std::uint64_t i = 0; i < lane_count; ++i)
    lanes[i] = {mix(domain, i), mix(i, domain) ^ 0x243f6a8885a308d3ULL};
  std::size_t i = 0;
  for (; i + 2 * lane_count <= count; i += 2 * lane_count)
    for (std::size_t lane = 0; lane < lane_count; ++lane)
      lanes[lane].add(word_at(i + 2 * lane), word_at(i + 2 * lane + 1));
  Hasher all(count);
  for (; i < count; ++i) all.add(word_at(i));
  for (const HashLane& lane : lanes) all.add(lane.a).add(lane.b);
  return all.finish();
}

}  // namespace

bool EncodingView::operator==(const EncodingView& other) const {
  return same_skeleton(other) && same_words(sizes, other.sizes);
}

bool EncodingView::same_skeleton(const EncodingView& other) const {
  return same_words(skeleton, other.skeleton);
}

Hash128 tessera::stream::hash_skeleton(const EncodingView& encoding) {
  const std::span<const std::uint32_t> words = encoding.skeleton;
  const std::size_t pairs = words.size() / 2;
  const auto pair_at = [&](std::size_t i) {
    return static_cast<std::uint64_t>(words[2 * i]) | static_cast<std::uint64_t>(words[2 * i + 1]) << 32;
  };
  Hasher all(words.size());
  all.add(hash_words(domain_skeleton, pairs, pair_at));
  if (words.size() % 2 != 0) all.add(words.back());
  return all.finish();
}

Hash128 tessera::stream::hash_encoding(const EncodingView& encoding) {
  const auto size_at = [&](std::size_t i) { return static_cast<std::uint64_t>(encoding.sizes[i]); };
  return Hasher()
      .add(hash_skeleton(encoding))
      .add(hash_words(domain_sizes, encoding.sizes.size(), size_at))
      .finish();
}
