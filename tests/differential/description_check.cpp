#include "tests/differential/description_check.h"

#include <deque>

#include "tessera/base/text.h"
#include "tessera/describe/host_graph.h"
#include "tessera/engine/devices.h"
#include "tessera/engine/graph_package.h"
#include "tessera/engine/op_compiler.h"
#include "tests/differential/listed_run.h"
#include "tests/differential/random_description.h"

using namespace tessera;
using namespace tessera::differential;
using namespace tessera::description;

namespace {

std::shared_ptr<OpCompiler> compiler_of(Random& random) {
  if (random.one_in(2)) return nullptr;
  static const auto* cpu =
      new std::shared_ptr<OpCompiler>(engine::make_op_compiler(value_or_throw(engine::find_device("cpu"))));
  return *cpu;
}

/// The listing as a text, for whoever looks for the reason.
std::string listing(const Description& description) {
  std::string out;
  for (const Region& region : description.regions)
    out += cat("region ", region.id, " in '", region.within.region, "'/", region.within.branch, ": ",
               to_string(region.kind), " of ", region.condition, region.count.value_or(-1), ", ",
               region.branches, " branches\n");
  for (const Node& node : description.nodes) {
    out += cat(node.id, " in '", node.within.region, "'/", node.within.branch, " of block '", node.block,
               "': ", node.call);
    for (const Parameter& parameter : node.parameters)
      out += parameter.scalar
                 ? cat(" ", parameter.name)
                 : cat(" ", to_string(parameter.access), ":", buffer_behind(description, node, parameter),
                       parameter.buffer.empty() ? " by edge" : "");
    out += "\n";
  }
  return out;
}

/// Without a node, the edges at it, and regions that have nothing in them then.
Description without_node(const Description& description, std::size_t node) {
  Description out = description;
  const std::string id = out.nodes[node].id;
  out.nodes.erase(out.nodes.begin() + static_cast<std::ptrdiff_t>(node));
  std::erase_if(out.edges, [&](const Edge& edge) { return edge.from.node == id || edge.to.node == id; });
  const auto is_empty = [&](const Region& region) {
    return std::ranges::none_of(out.nodes, [&](const Node& n) { return n.within.region == region.id; }) &&
           std::ranges::none_of(out.regions, [&](const Region& r) { return r.within.region == region.id; });
  };
  while (std::erase_if(out.regions, is_empty) > 0) {
  }
  return out;
}

class DescriptionCheck {
 public:
  /// With `smaller` in place of the description of the seed, if it is given.
  explicit DescriptionCheck(std::uint64_t seed, const Description* smaller = nullptr)
      : random_(seed), description_(random_description(random_)) {
    if (smaller != nullptr) description_ = *smaller;
    for (int i = 0; i < mix_kernels; ++i) salts_[cat("mix", i)] = i;
    for (int i = 0; i < mix_captures; ++i) salts_[cat("capture", i)] = 100 + i;
  }

  DescriptionVerdict run() {
    auto made = random_.one_in(2)
                    ? from_file()
                    : HostGraph::create(description_, kernels(),
                                        {.bindings = bound_memory(), .compiler = compiler_of(random_)});
    if (!made) return std::move(out_);
    graph_ = *std::move(made);
    out_.ran = true;
    for (int launch = 0; launch < 6 && !out_.failure; ++launch) {
      change_contents();
      launch_once();
      if (!out_.failure) change();
    }
    return std::move(out_);
  }

 private:
  [[nodiscard]] KernelTable kernels() const {
    KernelTable out;
    for (const auto& [name, salt] : salts_) {
      if (name.starts_with("mix")) out.add(name, mixing_kernel(salt));
      if (name.starts_with("capture")) out.add_capture(name, mixing_capture(salt));
    }
    out.add("count_down", [](KernelCall& call) { count_down(call.values<std::int64_t>(0)); });
    return out;
  }

  /// As another process would load it. What is valid can be saved, and what was saved can be loaded.
  Result<std::unique_ptr<HostGraph>> from_file() {
    const auto device = value_or_throw(engine::find_device(random_.one_in(2) ? "cpu" : "reference"));
    const auto package = TESSERA_TRY(engine::compile_graph(description_, *device));
    const std::string bytes = value_or_throw(engine::to_bytes(package));
    auto loaded = engine::graph_from_bytes(Bytes::copy(std::as_bytes(std::span(bytes))), "x.plan");
    if (!loaded) fail(cat("what was saved is not loaded: ", loaded.error().to_text()));
    if (!loaded) return std::move(loaded).error();
    return engine::make_graph(*std::move(loaded), kernels(), {.bindings = bound_memory()});
  }

  // ---- memory

  /// Small numbers: conditions and counts are among them.
  Words any_words(std::size_t size) {
    Words out;
    for (std::size_t i = 0; i < size; ++i) out.push_back(static_cast<std::int64_t>(random_.below(5)) - 1);
    return out;
  }

  std::span<std::byte> new_memory(const Buffer& buffer) {
    Words words = any_words(static_cast<std::size_t>(buffer.shape[0]));
    expected_[buffer.id] = words;
    memory_.push_back(std::move(words));
    bound_[buffer.id] = &memory_.back();
    return std::as_writable_bytes(std::span(memory_.back()));
  }

  Bindings bound_memory() {
    Bindings out;
    for (const Buffer& buffer : description_.buffers)
      if (buffer.lifetime == Lifetime::external) out[buffer.id] = new_memory(buffer);
    return out;
  }

  /// The tier is none: only what is in the memory changes.
  void change_contents() {
    for (const char* id : {"flag", "times", "in0"}) {
      if (random_.one_in(2)) continue;
      expected_[id] = any_words(bound_[id]->size());
      std::ranges::copy(expected_[id], bound_[id]->begin());  // where the graph looks
    }
  }

  // ---- launches

  void launch_once() {
    ++out_.launches;
    ListedRun listed(description_, salts_, expected_);
    listed.launch();
    const auto report = graph_->launch();
    if (!report) return fail(cat("the launch fails: ", report.error().to_text()));
    for (const Buffer& buffer : description_.buffers) {
      if (buffer.lifetime == Lifetime::external) compare(buffer.id, *bound_[buffer.id]);
      if (buffer.lifetime == Lifetime::graph) compare(buffer.id, content(buffer.id));
      if (!buffer.id.starts_with("rows")) continue;
      const auto lost = std::ranges::find(report->overflows, buffer.id, &Overflow::buffer);
      const std::uint64_t asked = listed.asked(buffer.id), fit = static_cast<std::uint64_t>(buffer.shape[0]);
      if ((lost != report->overflows.end()) != (asked > fit) ||
          (lost != report->overflows.end() && lost->asked != asked))
        fail(cat("the overflow of '", buffer.id, "' is not reported: ", asked, " of ", fit, " rows"));
    }
  }

  [[nodiscard]] Words content(const std::string& buffer) const {
    const auto bytes = value_or_throw(graph_->content(buffer));
    Words out(bytes.size() / sizeof(std::int64_t));
    std::memcpy(out.data(), bytes.data(), bytes.size());
    return out;
  }

  void compare(const std::string& buffer, const Words& got) {
    if (got != expected_.at(buffer))
      fail(cat("launch ", out_.launches, ": buffer '", buffer, "' is [", join(got, ", "), "], expected [",
               join(expected_.at(buffer), ", "), "]"));
  }

  void fail(std::string what) {
    if (!out_.failure) out_.failure = cat(what, "\n", listing(description_));
  }

  // ---- changes

  /// Some at once: the tier is that of the highest.
  void change() {
    Tier expected = Tier::none;
    for (std::size_t n = random_.below(4); n-- > 0;) expected = std::max(expected, change_one());
    const UpdateReport report = graph_->update();
    ++out_.updates;
    if (report.error) return fail(cat("the update fails: ", report.error->to_text()));
    if (report.tier != expected)
      fail(cat("the tier of an update is ", to_string(report.tier), " (", report.cause, "), expected ",
               to_string(expected)));
  }

  Tier change_one() {
    switch (random_.below(6)) {
      case 0:
        return change_memory();
      case 1:
        return change_grid();
      case 2:
        return change_code();
      case 3:
        return random_.one_in(2) ? change_structure() : refuse_structure();
      default:
        return change_number();
    }
  }

  Tier change_number() {
    Node& node = description_.nodes[random_.below(description_.nodes.size())];
    for (Parameter& parameter : node.parameters) {
      if (!parameter.scalar) continue;
      const std::int64_t value = next_number_++;
      if (parameter.in_device_memory)
        parameter.scalar = static_cast<double>(value);
      else
        parameter.scalar = value;
      value_or_throw(graph_->set_number(node.id, parameter.name, *parameter.scalar));
      return node.kind == NodeKind::captured && !parameter.in_device_memory ? Tier::recapture : Tier::hot;
    }
    return Tier::none;
  }

  Tier change_memory() {
    const Buffer& buffer = description_.buffers[random_.below(description_.buffers.size())];
    if (buffer.lifetime != Lifetime::external) return Tier::none;
    value_or_throw(graph_->bind(buffer.id, new_memory(buffer)));
    for (const Node& node : description_.nodes)
      if (node.kind == NodeKind::captured && uses(node, buffer.id)) return Tier::recapture;
    return Tier::warm;
  }

  [[nodiscard]] bool uses(const Node& node, const std::string& buffer) const {
    for (const Parameter& parameter : node.parameters)
      if (!parameter.scalar && buffer_behind(description_, node, parameter) == buffer) return true;
    return false;
  }

  Tier change_grid() {
    Node& node = description_.nodes[random_.below(description_.nodes.size())];
    if (node.kind != NodeKind::kernel) return Tier::none;
    node.grid = {next_number_++, 1, 1};
    value_or_throw(graph_->set_grid(node.id, node.grid));
    return Tier::warm;
  }

  Tier change_code() {
    auto at = salts_.begin();
    std::advance(at, random_.below(salts_.size()));
    auto& [name, salt] = *at;
    salt = next_number_++;
    const bool is_kernel = name.starts_with("mix");
    value_or_throw(is_kernel ? graph_->replace_kernel(name, mixing_kernel(salt))
                             : graph_->replace_capture(name, mixing_capture(salt)));
    const bool is_called = std::ranges::any_of(
        description_.nodes, [&](const Node& node) { return node.kind != NodeKind::op && node.call == name; });
    return !is_called ? Tier::none : is_kernel ? Tier::code : Tier::recapture;
  }

  /// A node more, or without the last one that nothing else needs.
  Tier change_structure() {
    Node node;
    node.id = cat("added", next_number_++);
    node.kind = NodeKind::kernel;
    node.call = "mix0";
    node.parameters = {integer("number", 5), read("x", {.buffer = "in1"}),
                       read_write("y", {.buffer = random_.one_in(2) ? "state0" : "state1"})};
    description_.nodes.push_back(std::move(node));
    value_or_throw(graph_->set_description(description_));
    return Tier::cold;
  }

  /// What is not valid leaves the plan as it was, whatever else changed with it.
  Tier refuse_structure() {
    Description wrong = description_;
    wrong.edges.push_back({{"nobody", std::string("x")}, {"nothing", std::string("y")}, {}});
    value_or_throw(graph_->set_description(wrong));
    if (!graph_->update().error) fail("an edge between nodes that are not there is accepted");
    value_or_throw(graph_->set_description(description_));
    return Tier::cold;
  }

  Random random_;
  Description description_;
  std::map<std::string, std::int64_t> salts_;
  Contents expected_;
  std::deque<Words> memory_;  // a graph may still look at what was bound before
  std::map<std::string, Words*> bound_;
  std::unique_ptr<HostGraph> graph_;
  std::int64_t next_number_ = 1000;
  DescriptionVerdict out_;
};

}  // namespace

DescriptionVerdict tessera::differential::check_description(std::uint64_t seed) {
  DescriptionVerdict out = DescriptionCheck(seed).run();
  if (!out.failure) return out;
  Random random(seed);
  Description best = random_description(random);
  for (bool is_smaller = true; is_smaller;) {
    is_smaller = false;
    for (std::size_t i = best.nodes.size(); i-- > 0;) {
      if (best.nodes[i].call == "count_down") continue;  // its loop would not end
      const Description candidate = without_node(best, i);
      DescriptionVerdict verdict = DescriptionCheck(seed, &candidate).run();
      if (!verdict.failure) continue;
      best = candidate;
      out.failure = std::move(verdict.failure);
      is_smaller = true;
    }
  }
  return out;
}
