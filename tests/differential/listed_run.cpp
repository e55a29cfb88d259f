#include "tests/differential/listed_run.h"

#include <algorithm>
#include <cstdlib>

#include "tessera/base/text.h"

using namespace tessera;
using namespace tessera::differential;
using namespace tessera::description;

namespace {

std::int64_t wrapped(std::uint64_t word) { return static_cast<std::int64_t>(word); }
std::uint64_t bits(std::int64_t word) { return static_cast<std::uint64_t>(word); }

std::int64_t op_result(const std::string& op, std::int64_t a, std::int64_t b) {
  if (op == "add") return wrapped(bits(a) + bits(b));
  if (op == "sub") return wrapped(bits(a) - bits(b));
  if (op == "mul") return wrapped(bits(a) * bits(b));
  if (op == "maximum") return std::max(a, b);
  if (op == "minimum") return std::min(a, b);
  if (op == "bit_xor") return a ^ b;
  if (op == "identity") return a;
  return wrapped(0 - bits(a));  // neg
}

}  // namespace

void tessera::differential::mix(std::int64_t salt, std::int64_t number, std::span<const MixedPin> pins) {
  std::uint64_t state = bits(salt) * 0x9e3779b97f4a7c15ULL + bits(number);
  for (const MixedPin& pin : pins)
    if (reads(pin.access))
      for (const std::int64_t word : pin.words) state = (state ^ bits(word)) * 0xff51afd7ed558ccdULL + 1;
  for (const MixedPin& pin : pins) {
    if (pin.access == Access::append)
      for (int row = 0; row < 2; ++row) pin.append(wrapped(state = state * 6364136223846793005ULL + 7));
    else if (writes(pin.access))
      for (std::int64_t& word : pin.words) word = wrapped(state = state * 6364136223846793005ULL + 3);
  }
}

void tessera::differential::count_down(std::span<std::int64_t> words) {
  words[0] = std::max<std::int64_t>(words[0] - 1, 0);
}

std::string tessera::differential::buffer_behind(const Description& description, const Node& node,
                                                 const Parameter& parameter) {
  if (!parameter.buffer.empty()) return parameter.buffer;
  for (const Edge& edge : description.edges)
    if (edge.to == PinName{node.id, parameter.name})
      for (const Node& from : description.nodes)
        for (const Parameter& pin : from.parameters)
          if (edge.from == PinName{from.id, pin.name}) return buffer_behind(description, from, pin);
  return cat(node.id, ".", parameter.name);
}

ListedRun::ListedRun(const Description& description, const std::map<std::string, std::int64_t>& salts,
                     Contents& contents)
    : description_(description), salts_(salts), contents_(contents) {
  for (const Buffer& buffer : description.buffers)
    contents_[buffer.id].resize(static_cast<std::size_t>(buffer.shape[0]));
}

void ListedRun::launch() {
  for (const Buffer& buffer : description_.buffers) asked_[buffer.id] = 0;
  run_scope({});
}

// ---- the listing

/// A region stands where its first node does.
std::size_t ListedRun::first_node(const Region& region) const {
  std::size_t out = description_.nodes.size();
  for (std::size_t i = 0; i < description_.nodes.size(); ++i)
    if (description_.nodes[i].within.region == region.id) out = std::min(out, i);
  for (const Region& inner : description_.regions)
    if (inner.within.region == region.id) out = std::min(out, first_node(inner));
  return out;
}

std::vector<ListedRun::Item> ListedRun::items_of(const Within& scope) const {
  std::vector<std::pair<std::size_t, Item>> found;
  for (const Region& region : description_.regions)
    if (region.within == scope) found.push_back({first_node(region), {.region = &region}});
  for (std::size_t i = 0; i < description_.nodes.size(); ++i)
    if (description_.nodes[i].within == scope) found.push_back({i, {.node = &description_.nodes[i]}});
  std::ranges::stable_sort(found, {}, &std::pair<std::size_t, Item>::first);
  std::vector<Item> out;
  for (const auto& [at, item] : found) out.push_back(item);
  return out;
}

bool ListedRun::is_appended(const std::string& buffer) const {
  for (const Node& node : description_.nodes)
    for (const Parameter& pin : node.parameters)
      if (pin.access == Access::append && buffer_behind(description_, node, pin) == buffer) return true;
  return false;
}

// ---- what an `if` or `switch` only writes

ListedRun::Effects ListedRun::effects_of(const Node& node) const {
  Effects out;
  for (const Parameter& pin : node.parameters) {
    if (pin.scalar) continue;
    Effect& effect = out[buffer_behind(description_, node, pin)];
    effect.takes_old |= pin.access != Access::write;
    effect.writes |= writes(pin.access);
  }
  return out;
}

ListedRun::Effects ListedRun::effects_of(const Region& region) const {
  Effects out;
  if (!region.condition.empty()) out[region.condition].takes_old = true;
  for (std::int64_t branch = 0; branch < region.branches; ++branch) {
    Effects so_far;
    for (const Item& item : items_of({region.id, branch}))
      for (const auto& [buffer, effect] :
           item.node != nullptr ? effects_of(*item.node) : effects_of(*item.region)) {
        Effect& whole = so_far[buffer];
        whole.takes_old |= effect.takes_old && !whole.writes;
        whole.writes |= effect.writes;
      }
    for (const auto& [buffer, effect] : so_far) {
      out[buffer].takes_old |= effect.takes_old || (is_loop(region.kind) && effect.writes);
      out[buffer].writes |= effect.writes;
    }
  }
  if (!region.index.empty()) out[region.index].writes = true;
  return out;
}

// ---- running

void ListedRun::run_scope(const Within& scope) {
  for (const Item& item : items_of(scope))
    item.node != nullptr ? run_node(*item.node) : run_region(*item.region);
}

void ListedRun::run_region(const Region& region) {
  const auto condition = [&] { return contents_.at(region.condition)[0]; };
  if (region.kind == RegionKind::while_) {
    while (condition() != 0) run_scope({region.id, 0});
  } else if (region.kind == RegionKind::for_) {
    const std::int64_t count = region.count ? *region.count : condition();
    for (std::int64_t i = 0; i < count; ++i) {
      if (!region.index.empty()) contents_.at(region.index)[0] = i;
      run_scope({region.id, 0});
    }
  } else {
    const std::int64_t chosen = condition();
    for (const auto& [buffer, effect] : effects_of(region))
      if (effect.writes && !effect.takes_old) std::ranges::fill(contents_[buffer], 0);
    const std::int64_t branch = region.kind == RegionKind::switch_ ? chosen : chosen != 0 ? 0 : 1;
    if (branch >= 0 && branch < region.branches) run_scope({region.id, branch});
  }
}

void ListedRun::run_node(const Node& node) {
  if (node.kind == NodeKind::op) return run_op(node);
  std::int64_t number = 0;
  std::vector<MixedPin> pins;
  for (const Parameter& parameter : node.parameters) {
    if (parameter.scalar) {
      number = parameter.in_device_memory ? static_cast<std::int64_t>(std::get<double>(*parameter.scalar))
                                          : std::get<std::int64_t>(*parameter.scalar);
      continue;
    }
    const std::string buffer = buffer_behind(description_, node, parameter);
    Words& words = contents_[buffer];
    if (words.empty()) words.resize(static_cast<std::size_t>(std::atoi(parameter.shape.c_str() + 1)));
    const auto append = [&words, &asked = asked_[buffer]](std::int64_t word) {
      if (asked < words.size()) words[asked] = word;
      ++asked;
    };
    const bool reads_rows = parameter.access == Access::read && is_appended(buffer);
    const std::size_t rows = reads_rows ? std::min<std::size_t>(asked_[buffer], words.size()) : words.size();
    pins.push_back({parameter.access, std::span(words).first(rows), append});
  }
  if (node.call == "count_down") return count_down(pins[0].words);
  mix(salts_.at(node.call), number, pins);
}

void ListedRun::run_op(const Node& node) {
  std::vector<Words> inputs;
  for (const Parameter& parameter : node.parameters) {
    if (parameter.access == Access::write && !parameter.scalar) {
      Words& out = contents_[buffer_behind(description_, node, parameter)];
      out.resize(inputs[0].size());
      for (std::size_t i = 0; i < out.size(); ++i) {
        const Words& second = inputs.back();
        out[i] = op_result(node.call, inputs[0][i], second[second.size() == 1 ? 0 : i]);
      }
    } else {
      inputs.push_back(parameter.scalar ? Words{std::get<std::int64_t>(*parameter.scalar)}
                                        : contents_.at(buffer_behind(description_, node, parameter)));
    }
  }
}
