#include "tessera/runtime/cpu/shared_copy.h"

#include <algorithm>

using namespace tessera;
using namespace tessera::runtime::cpu;

namespace {

/// Elements that one thread copies in the time that it takes to wake another.
constexpr std::int64_t least_elements = 16'384;
/// Elements that one thread copies as long as it takes to take another piece.
constexpr std::int64_t least_cut_elements = 2048;
/// Pieces per thread: some threads are late.
constexpr std::int64_t copy_pieces_per_thread = 2;

/// Part of an array along one axis.
op::Array part_of(op::Array array, std::size_t axis, std::int64_t begin, std::int64_t end) {
  array.layout.offset += begin * array.layout.strides[axis];
  array.layout.shape[axis] = end - begin;
  return array;
}

/// One of `pieces` parts along the first axis that can be cut. What is small is not: the first piece has all.
void copy_piece(const SharedCopy& copy, std::int64_t piece, std::int64_t pieces) {
  const auto& shape = copy.to.shape();
  const auto first = std::find_if(shape.begin(), shape.end(), [](std::int64_t size) { return size > 1; });
  if (copy.to.size() < least_cut_elements || first == shape.end()) {
    if (piece == 0) op::copy_elements(copy.from, copy.to);
    return;
  }
  const auto axis = static_cast<std::size_t>(first - shape.begin());
  const std::int64_t begin = *first * piece / pieces, end = *first * (piece + 1) / pieces;
  if (begin < end)
    op::copy_elements(part_of(copy.from, axis, begin, end), part_of(copy.to, axis, begin, end));
}

}  // namespace

void runtime::cpu::copy_shared(std::span<const SharedCopy> copies, ThreadPool& threads) {
  std::int64_t elements = 0;
  for (const SharedCopy& copy : copies) elements += copy.to.size();
  if (threads.size() == 1 || elements < least_elements) {
    for (const SharedCopy& copy : copies) op::copy_elements(copy.from, copy.to);
    return;
  }
  const std::int64_t pieces = static_cast<std::int64_t>(threads.size()) * copy_pieces_per_thread;
  threads.run(static_cast<std::int64_t>(copies.size()) * pieces, 1,
              [&](std::int64_t begin, std::int64_t end, unsigned) {
                for (std::int64_t i = begin; i < end; ++i)
                  copy_piece(copies[static_cast<std::size_t>(i / pieces)], i % pieces, pieces);
              });
}

void runtime::cpu::copy_shared(const op::Array& from, const op::Array& to, ThreadPool& threads) {
  const SharedCopy copy{from, to};
  copy_shared({&copy, 1}, threads);
}
