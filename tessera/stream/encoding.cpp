#include "tessera/stream/encoding.h"

#include <cstring>

using namespace tessera;
using namespace tessera::stream;

namespace {

enum Domain : std::uint64_t { domain_skeleton = 0x5e1e70, domain_sizes = 0x512e5 };

template <class T>
bool same_words(std::span<const T> a, std::span<const T> b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size_bytes()) == 0);
}

/// Four hashers take turns, so that the processor works on four words at a time.
Hash128 hash_words(Domain domain, std::size_t count, auto&& word_at) {
  Hasher lanes[4] = {Hasher(domain), Hasher(domain + 1), Hasher(domain + 2), Hasher(domain + 3)};
  std::size_t i = 0;
  for (; i + 4 <= count; i += 4)
    for (std::size_t lane = 0; lane < 4; ++lane) lanes[lane].add(word_at(i + lane));
  for (; i < count; ++i) lanes[i % 4].add(word_at(i));
  Hasher all(count);
  for (const Hasher& lane : lanes) all.add(lane.finish());
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
