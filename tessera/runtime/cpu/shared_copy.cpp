#include "tessera/runtime/cpu/shared_copy.h"

#include <algorithm>

using namespace tessera;
using namespace tessera::runtime::cpu;

namespace {

/// Elements that one thread copies in the time that it takes to wake another.
constexpr std::int64_t least_elements = 16'384;
/// Pieces per thread: some threads are late.
constexpr std::int64_t copy_pieces_per_thread = 2;

/// Part of an array along one axis.
op::Array part_of(op::Array array, std::size_t axis, std::int64_t begin, std::int64_t end) {
  array.layout.offset += begin * array.layout.strides[axis];
  array.layout.shape[axis] = end - begin;
  return array;
}

}  // namespace

void runtime::cpu::copy_shared(const op::Array& from, const op::Array& to, ThreadPool& threads) {
  const auto& shape = to.shape();
  const auto first = std::find_if(shape.begin(), shape.end(), [](std::int64_t size) { return size > 1; });
  if (threads.size() == 1 || first == shape.end() || to.size() < least_elements)
    return op::copy_elements(from, to);
  const auto axis = static_cast<std::size_t>(first - shape.begin());
  const std::int64_t piece = std::max<std::int64_t>(
      1, *first / (static_cast<std::int64_t>(threads.size()) * copy_pieces_per_thread));
  threads.run(*first, piece, [&](std::int64_t begin, std::int64_t end, unsigned) {
    op::copy_elements(part_of(from, axis, begin, end), part_of(to, axis, begin, end));
  });
}
