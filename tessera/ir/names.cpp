#include "tessera/ir/names.h"

#include <algorithm>

#include "tessera/base/text.h"
#include "tessera/ir/dim.h"
#include "tessera/ir/literal.h"
#include "tessera/ir/syntax.h"

using namespace tessera;
using namespace tessera::ir;

namespace {

std::uint32_t hash_of(std::string_view name) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  hash *= 0x9e3779b97f4a7c15ULL;  // names that differ in the last digit must not stand side by side
  return static_cast<std::uint32_t>(hash >> 32);
}

}  // namespace

std::size_t NameSet::position(std::string_view name, std::uint32_t hash) const {
  std::size_t at = hash & (slots_.size() - 1);
  while (slots_[at].use != 0 && (slots_[at].hash != hash || uses_[slots_[at].use - 1].name != name))
    at = (at + 1) & (slots_.size() - 1);
  return at;
}

NameSet::Use* NameSet::find(std::string_view name) {
  const Slot& slot = slots_[position(name, hash_of(name))];
  return slot.use == 0 ? nullptr : &uses_[slot.use - 1];
}

std::pair<NameSet::Use&, bool> NameSet::obtain(std::string_view name) {
  if (2 * (uses_.size() + 1) > slots_.size()) {
    std::vector<Slot> old(slots_.size() * 4);
    std::swap(old, slots_);
    for (const Slot& slot : old)
      if (slot.use != 0) slots_[position(uses_[slot.use - 1].name, slot.hash)] = slot;
  }
  const std::uint32_t hash = hash_of(name);
  Slot& slot = slots_[position(name, hash)];
  const bool is_new = slot.use == 0;
  if (is_new) {
    uses_.push_back({.name = name});
    slot = {hash, static_cast<std::uint32_t>(uses_.size())};
  }
  return {uses_[slot.use - 1], is_new};
}

bool tessera::ir::is_reserved_word(std::string_view word) {
  static constexpr std::string_view words[] = {
      "call", "dense", "do",     "else",   "expr", "false",  "for",  "free",  "func", "if",    "in",  "item",
      "let",  "local", "module", "return", "stmt", "switch", "true", "tuple", "type", "while", "with"};
  return std::binary_search(std::begin(words), std::end(words), word) || parse_dtype(word).has_value();
}

namespace {

/// A word that is written as it stands.
bool is_plain(std::string_view name) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  const auto word_char = [&](char c) { return letter(c) || (c >= '0' && c <= '9'); };
  return !name.empty() && letter(name[0]) && std::all_of(name.begin(), name.end(), word_char) &&
         !is_reserved_word(name);
}

}  // namespace

void tessera::ir::append_identifier(std::string& out, std::string_view name) {
  if (is_plain(name))
    out += name;
  else
    append_escaped(out, name, '`');
}

void VariableNames::open() { scopes_.push_back({next_scope_++, {}, {}, {}}); }

void VariableNames::close() {
  Scope& scope = scopes_.back();
  for (; !scope.covered_variables.empty(); scope.covered_variables.pop_back()) {
    const auto& [var, entry] = scope.covered_variables.back();
    entries_[*var] = entry;
  }
  for (; !scope.covered_names.empty(); scope.covered_names.pop_back()) {
    const NameSet::Use& covered = scope.covered_names.back();
    names_.find(covered.name)->scope = covered.scope;
  }
  scopes_.pop_back();
}

std::string_view VariableNames::written(std::string_view name) {
  if (is_plain(name)) return name;
  append_escaped(made_.emplace_back(), name, '`');
  return made_.back();
}

/// `use` is what names_ has for `name`.
std::string_view VariableNames::assign(const Var& var, std::string_view name, NameSet::Use& use,
                                       bool is_new) {
  Entry& entry = entries_[var];
  if (entry.scope != 0) scopes_.back().covered_variables.emplace_back(&var, entry);
  entry.written = written(name);
  entry.scope = scopes_.back().id;
  if (!is_new) scopes_.back().covered_names.push_back(use);
  use.scope = entry.scope;
  return entry.written;
}

bool VariableNames::taken(const NameSet::Use* use, bool everywhere) const {
  return use != nullptr && (everywhere || use->free || use->scope == scopes_.back().id);
}

/// A name that is not taken, made by numbering `wanted`.
std::string_view VariableNames::unique(std::string_view wanted, bool everywhere) {
  if (!taken(names_.find(wanted), everywhere)) return wanted;
  const SizeName split = split_size_name(wanted);
  const auto numbered = [&](std::uint64_t number) { return cat(split.base, "_", number); };
  TakenNumbers& numbers = everywhere ? numbers_everywhere_ : scopes_.back().numbers;
  const std::uint64_t number = numbers.first_free(split.base, split.number + 1, [&](std::uint64_t candidate) {
    return taken(names_.find(numbered(candidate)), everywhere);
  });
  return made_.emplace_back(numbered(number));
}

std::string_view VariableNames::define(const Var& var) {
  const auto [use, is_new] = names_.obtain(var.name);
  if (is_new || !taken(&use, false)) return assign(var, var.name, use, is_new);
  const std::string_view name = unique(var.name, false);
  const auto [other, is_other_new] = names_.obtain(name);
  return assign(var, name, other, is_other_new);
}

std::string_view VariableNames::use(const Var& var) {
  const Entry* entry = entries_.find(var);
  if (entry != nullptr && entry->scope == scopes_.back().id) return entry->written;
  const std::string_view* free = free_.find(var);
  return free == nullptr ? std::string_view() : *free;
}

std::string_view VariableNames::declare_free(const Var& var) {
  const std::string_view name = unique(var.name, true);
  names_.obtain(name).first.free = true;
  return free_[var] = written(name);
}
