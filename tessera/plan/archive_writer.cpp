#include "tessera/plan/archive_writer.h"

#include "tessera/ir/walk.h"

using namespace tessera;
using namespace tessera::plan::archive;

void Writer::blob(std::span<const std::byte> bytes) {
  const std::string_view elements(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  number(place_of(elements));
  number(bytes.size());
}

/// Programs for several values of flags have the same weights, which are written once.
std::size_t Writer::place_of(std::string_view elements) {
  std::string& data = sections_[static_cast<std::size_t>(Section::data)];
  std::vector<std::size_t>& same_hash = places_[hash_text(elements).low];
  for (const std::size_t at : same_hash)
    if (std::string_view(data).substr(at, elements.size()) == elements) return at;
  data.resize((data.size() + data_alignment - 1) / data_alignment * data_alignment);
  same_hash.push_back(data.size());
  data += elements;
  return same_hash.back();
}

std::uint32_t Writer::number_of(const ir::Node* node) {
  if (const std::uint32_t* known = nodes_.find(*node)) return *known;
  std::string* const before = to_;
  to_ = &sections_[static_cast<std::size_t>(Section::nodes)];
  for (const ir::Node* below : ir::post_order(*node)) {
    if (nodes_.find(*below) != nullptr) continue;
    write(below->kind());
    write(below->span());
    ir::visit_node(*below, [&](const auto& concrete) {
      for_each_field(concrete, [&](const auto&, const auto& member) { write(member); });
    });
    nodes_[*below] = ++node_count_;
  }
  to_ = before;
  return node_count_;
}

std::uint32_t Writer::number_of(const ir::SourceFile* file) {
  const auto [at, is_new] = files_.try_emplace(file, static_cast<std::uint32_t>(files_.size() + 1));
  if (!is_new) return at->second;
  std::string* const before = std::exchange(to_, &sections_[static_cast<std::size_t>(Section::files)]);
  write(file->name());
  write(file->labels());
  to_ = before;
  return at->second;
}

std::uint32_t Writer::number_of(const KernelRef& kernel) {
  const auto [at, is_new] =
      kernels_.try_emplace(kernel.get(), static_cast<std::uint32_t>(kernels_.size() + 1));
  if (!is_new) return at->second;
  std::string* const before = std::exchange(to_, &sections_[static_cast<std::size_t>(Section::kernels)]);
  write(*kernel);
  to_ = before;
  return at->second;
}

template void Writer::add<tessera::plan::Plan>(const tessera::plan::Plan& value);
