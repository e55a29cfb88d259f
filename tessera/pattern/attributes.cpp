#include "tessera/pattern/attributes.h"

#include <algorithm>
#include <bit>

#include "tessera/ir/structural_hash.h"

using namespace tessera;
using namespace tessera::pattern;

namespace {

template <class T>
bool same(const T& a, const T& b) {
  if constexpr (std::is_same_v<T, double>)
    return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
  else if constexpr (std::is_same_v<T, std::vector<double>>)
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](double x, double y) { return same(x, y); });
  else
    return a == b;
}

template <class T>
void add_one(Hasher& hasher, const T& value) {
  if constexpr (std::is_same_v<T, std::string>) {
    hasher.add_text(value);
  } else if constexpr (std::is_same_v<T, double>) {
    hasher.add(std::bit_cast<std::uint64_t>(value));
  } else if constexpr (std::is_same_v<T, ir::Dim>) {
    hasher.add(value.is_constant() ? 0 : 1);
    if (value.is_constant())
      hasher.add(static_cast<std::uint64_t>(value.value()));
    else
      hasher.add(ir::structural_hash(*value.expr(), ir::CompareMode::strict));
  } else if constexpr (requires { value.begin(); }) {
    hasher.add(value.size());
    for (const auto& item : value) add_one(hasher, item);
  } else {
    hasher.add(static_cast<std::uint64_t>(value));
  }
}

}  // namespace

bool tessera::pattern::same_value(const AttributeValue& a, const AttributeValue& b) {
  if (a.index() != b.index()) return false;
  return std::visit([&]<class T>(const T& held) { return same(held, std::get<T>(b)); }, a);
}

bool tessera::pattern::same_attributes(const Attributes& a, const Attributes& b) {
  const auto same_entry = [](const Attributes::Entry& x, const Attributes::Entry& y) {
    return x.first == y.first && same_value(x.second, y.second);
  };
  return std::ranges::equal(a.entries(), b.entries(), same_entry);
}

void tessera::pattern::add_to_hash(Hasher& hasher, const AttributeValue& value) {
  hasher.add(value.index());
  std::visit([&](const auto& held) { add_one(hasher, held); }, value);
}

Hash128 tessera::pattern::hash_of(const Attributes& attributes) {
  Hasher hasher(attributes.size());
  for (const auto& [name, value] : attributes.entries()) {
    hasher.add_text(name);
    add_to_hash(hasher, value);
  }
  return hasher.finish();
}
