#include "tests/differential/random_description.h"

#include <algorithm>
#include <map>
#include <set>

#include "tessera/base/text.h"
#include "tests/differential/listed_run.h"

using namespace tessera;
using namespace tessera::differential;
using namespace tessera::description;

namespace {

/// What may be done with a buffer.
enum class Role : std::uint8_t {
  input,  ///< read alone
  state,  ///< read and updated, never defined: what it holds comes from launches before
  value,  ///< defined before it is used
  rows,   ///< appended to, then read
};

struct KnownBuffer {
  std::string id;  ///< empty: the buffer of a pin, which edges alone reach
  std::int64_t size = 0;
  Role role = Role::value;
  bool is_temporary = false;
  bool is_defined = false;
  bool is_read = false;           ///< of rows: nothing is appended any more
  std::optional<PinName> writer;  ///< the last one, if it stands in the same scope as what comes next
};

/// What the items of a scope did with buffers so far.
struct ScopeUses {
  bool is_loop = false;
  std::set<std::string> taken;    ///< read before the scope defined them
  std::set<std::string> defined;  ///< by a node, or by a branch that only writes
  std::set<std::string> written;
  std::set<std::string> loose;  ///< written by a loop, which may not have run, before the scope defined them
};

class Generator {
 public:
  explicit Generator(Random& random) : random_(random) {}

  Description make() {
    b_.block("first").block("second").block("inner", "first");
    add_buffers();
    write_scope(3 + random_.below(8), 2);
    return std::move(b_.description());
  }

 private:
  std::int64_t any_size() { return random_.any(std::vector<std::int64_t>{1, 4, 4, 4, 7}); }

  void add_buffers() {
    b_.external("flag", Dtype::i64, {1}).external("times", Dtype::i64, {1});
    for (std::size_t i = 0; i < 3; ++i) add_buffer(cat("in", i), Role::input, Lifetime::external);
    for (std::size_t i = 0; i < 2; ++i)
      add_buffer(cat("state", i), Role::state, i == 0 ? Lifetime::external : Lifetime::graph);
    for (std::size_t i = 0; i < 6; ++i)
      add_buffer(cat("value", i), Role::value,
                 random_.any(std::vector{Lifetime::external, Lifetime::graph, Lifetime::region}));
    for (std::size_t i = 0; i < 2; ++i)
      add_buffer(cat("rows", i), Role::rows, i == 0 ? Lifetime::external : Lifetime::graph);
  }

  void add_buffer(std::string id, Role role, Lifetime lifetime) {
    const std::int64_t size = any_size();
    if (lifetime == Lifetime::external) b_.external(id, Dtype::i64, {size});
    if (lifetime == Lifetime::graph) b_.graph(id, Dtype::i64, {size});
    if (lifetime == Lifetime::region) b_.temporary(id, Dtype::i64, {size});
    const bool is_there = role == Role::input || role == Role::state;
    buffers_.push_back({.id = std::move(id),
                        .size = size,
                        .role = role,
                        .is_temporary = lifetime == Lifetime::region,
                        .is_defined = is_there,
                        .writer = {}});
  }

  // ---- scopes

  void write_scope(std::size_t items, int depth) {
    for (std::size_t i = 0; i < items; ++i) {
      b_.in_block(random_.any(std::vector<std::string>{"", "first", "second", "inner"}));
      if (depth > 0 && random_.one_in(5))
        write_region(depth);
      else
        write_node();
    }
  }

  void write_node() {
    const std::size_t kind = random_.below(5);
    if (kind < 2 && write_op()) return;
    write_kernel(kind == 2 ? NodeKind::captured : NodeKind::kernel);
  }

  /// Runs `f` where edges reach nothing that was written outside.
  template <class F>
  ScopeUses inside(const std::string& region, std::int64_t branch, bool is_loop, F&& f) {
    const Within before = within_;
    scopes_.push_back({.is_loop = is_loop, .taken = {}, .defined = {}, .written = {}, .loose = {}});
    within_ = {region, branch};
    b_.within(region, branch);
    for (KnownBuffer& buffer : buffers_) buffer.writer.reset();
    f();
    for (KnownBuffer& buffer : buffers_) buffer.writer.reset();
    std::erase_if(buffers_, [](const KnownBuffer& buffer) { return buffer.id.empty(); });
    within_ = before;
    b_.within(before.region, before.branch);
    ScopeUses uses = std::move(scopes_.back());
    scopes_.pop_back();
    return uses;
  }

  /// What a region does is what its branches do.
  void leave(std::span<const ScopeUses> branches) {
    std::set<std::string> taken, loose, written;
    for (const ScopeUses& branch : branches) {
      taken.insert(branch.taken.begin(), branch.taken.end());
      written.insert(branch.written.begin(), branch.written.end());
      loose.insert(branch.loose.begin(), branch.loose.end());
    }
    for (const std::string& buffer : taken) take(buffer);
    for (const std::string& buffer : written) {
      ScopeUses& outer = scopes_.back();
      outer.written.insert(buffer);
      if (outer.defined.count(buffer) != 0) continue;
      const bool is_defined = !branches[0].is_loop && taken.count(buffer) == 0 && loose.count(buffer) == 0;
      (is_defined ? outer.defined : outer.loose).insert(buffer);
    }
  }

  void take(const std::string& buffer) {
    if (scopes_.back().defined.count(buffer) == 0) scopes_.back().taken.insert(buffer);
  }

  /// In a scope, whatever reads a buffer comes behind the first item that defines it. The listing is the
  /// order only if none stands in front: neither of this scope, nor of those around it up to a loop, which
  /// defines nothing.
  [[nodiscard]] bool may_be_defined(const std::string& buffer) const {
    for (std::size_t s = scopes_.size(); s-- > 0;) {
      if (scopes_[s].taken.count(buffer) != 0 && scopes_[s].defined.count(buffer) == 0) return false;
      if (scopes_[s].is_loop) return true;
    }
    return true;
  }

  void write_region(int depth) {
    const std::string id = cat("region", regions_++);
    switch (random_.below(5)) {
      case 0:
        b_.if_(id, "flag");
        return write_branches(id, 1, depth);
      case 1:
        b_.if_else(id, "flag");
        return write_branches(id, 2, depth);
      case 2:
        b_.switch_(id, "flag", 3);
        return write_branches(id, 3, depth);
      case 3:
        if (random_.one_in(2))
          b_.for_(id, static_cast<std::int64_t>(random_.below(4)));
        else
          b_.for_count_in(id, "times");
        return write_loop(id, depth);
      default:
        return write_while(id, depth);
    }
  }

  /// What a branch defines is zero where another runs.
  void write_branches(const std::string& id, std::int64_t branches, int depth) {
    const auto before = definitions();
    auto after = before;
    std::vector<ScopeUses> uses;
    for (std::int64_t branch = 0; branch < branches; ++branch) {
      set_definitions(before);
      uses.push_back(inside(id, branch, false, [&] { write_scope(1 + random_.below(3), depth - 1); }));
      for (const auto& [buffer, is_defined] : definitions()) after[buffer] = after[buffer] || is_defined;
    }
    set_definitions(after);
    leave(uses);
  }

  /// A loop may run zero times: what it defines of temporary buffers is then not there.
  void write_loop(const std::string& id, int depth) {
    const auto before = definitions();
    const ScopeUses uses = inside(id, 0, true, [&] { write_scope(1 + random_.below(3), depth - 1); });
    leave({&uses, 1});
    for (KnownBuffer& buffer : buffers_)
      if (buffer.is_temporary && buffer.role == Role::value) buffer.is_defined = before.at(buffer.id);
  }

  void write_while(const std::string& id, int depth) {
    const std::string left = cat(id, "_left");
    b_.temporary(left, Dtype::i64, {1});
    b_.op(cat(left, "_begins"), "identity", {read("x", {.buffer = "times"}), write("y", {.buffer = left})});
    b_.while_(id, left, 100);
    const auto before = definitions();
    const ScopeUses uses = inside(id, 0, true, [&] {
      b_.kernel(cat(left, "_ends"), "count_down", {read_write("x", {.buffer = left})});
      write_scope(1 + random_.below(3), depth - 1);
    });
    leave({&uses, 1});
    for (KnownBuffer& buffer : buffers_)
      if (buffer.is_temporary && buffer.role == Role::value) buffer.is_defined = before.at(buffer.id);
  }

  [[nodiscard]] std::map<std::string, bool> definitions() const {
    std::map<std::string, bool> out;
    for (const KnownBuffer& buffer : buffers_) out[buffer.id] = buffer.is_defined;
    return out;
  }
  void set_definitions(const std::map<std::string, bool>& definitions) {
    for (KnownBuffer& buffer : buffers_)
      if (const auto known = definitions.find(buffer.id); known != definitions.end() && !buffer.id.empty())
        buffer.is_defined = known->second;
  }

  // ---- nodes

  std::string next_node() { return cat("n", nodes_++); }

  /// A buffer for which `fits`, or null.
  template <class F>
  KnownBuffer* any_buffer(F&& fits) {
    std::vector<KnownBuffer*> found;
    for (KnownBuffer& buffer : buffers_)
      if (fits(buffer)) found.push_back(&buffer);
    return found.empty() ? nullptr : random_.any(found);
  }

  /// By an edge from who wrote it last, or by name.
  Parameter reading(const std::string& node, const std::string& pin, KnownBuffer& from) {
    from.is_read = true;
    take(from.id);
    if (!from.writer || (!from.id.empty() && !random_.one_in(3))) return read(pin, {.buffer = from.id});
    b_.edge(*from.writer, {node, pin});
    return read(pin);
  }

  void has_written(const std::string& node, const std::string& pin, KnownBuffer& buffer) {
    buffer.is_defined = true;
    buffer.writer = PinName{node, pin};
    scopes_.back().written.insert(buffer.id);
  }

  bool write_op() {
    static const std::vector<std::string> binary{"add", "sub", "mul", "maximum", "minimum", "bit_xor"};
    KnownBuffer* a = any_buffer([](const KnownBuffer& x) { return x.is_defined && x.role != Role::rows; });
    KnownBuffer* out = any_buffer([&](const KnownBuffer& x) {
      return x.role == Role::value && !x.id.empty() && x.size == a->size && &x != a && may_be_defined(x.id);
    });
    if (out == nullptr) return false;
    const std::string id = next_node();
    if (random_.one_in(4)) {
      b_.op(id, "neg", {reading(id, "x", *a), write("y", {.buffer = out->id})});
    } else {
      KnownBuffer* second = any_buffer([&](const KnownBuffer& x) {
        return x.is_defined && x.role != Role::rows && x.size == a->size && &x != out;
      });
      const auto number = static_cast<std::int64_t>(random_.below(100));
      const Parameter first = reading(id, "a", *a);
      b_.op(id, random_.any(binary),
            {first, random_.one_in(3) ? integer("b", number) : reading(id, "b", *second),
             write("y", {.buffer = out->id})});
    }
    scopes_.back().defined.insert(out->id);
    has_written(id, "y", *out);
    return true;
  }

  void write_kernel(NodeKind kind) {
    const std::string id = next_node();
    const auto number = static_cast<std::int64_t>(random_.below(1000));
    const bool is_captured = kind == NodeKind::captured, is_far = is_captured && random_.one_in(2);
    std::vector<Parameter> parameters{is_far ? device_scalar("number", static_cast<double>(number))
                                             : integer("number", number)};
    std::vector<KnownBuffer*> used;
    for (std::size_t pin = 0, pins = 1 + random_.below(4); pin < pins; ++pin)
      add_pin(id, cat("p", pin), is_captured, parameters, used);
    const std::string own = cat("[", any_size(), "]");
    parameters.push_back(write("own", {.dtype = Dtype::i64, .shape = own}));
    if (is_captured)
      b_.captured(id, cat("capture", random_.below(mix_captures)), std::move(parameters));
    else
      b_.kernel(id, cat("mix", random_.below(mix_kernels)), std::move(parameters));
    buffers_.push_back({.id = "",
                        .size = std::atoi(own.c_str() + 1),
                        .role = Role::input,
                        .is_defined = true,
                        .writer = PinName{id, std::string("own")}});
  }

  /// One pin on a buffer that no other pin of the node has.
  void add_pin(const std::string& node, const std::string& name, bool is_captured,
               std::vector<Parameter>& parameters, std::vector<KnownBuffer*>& used) {
    KnownBuffer* buffer = any_buffer([&](const KnownBuffer& x) {
      return std::ranges::find(used, &x) == used.end() && !(is_captured && x.role == Role::rows);
    });
    if (buffer == nullptr) return;
    used.push_back(buffer);
    const bool may_define = buffer->role == Role::value && !buffer->id.empty();
    const bool may_update = buffer->is_defined && (may_define || buffer->role == Role::state);
    if (buffer->role == Role::rows && !buffer->is_read && !random_.one_in(3)) {
      parameters.push_back(append(name, {.buffer = buffer->id}));
    } else if (buffer->role == Role::rows) {
      if (within_.region.empty()) parameters.push_back(reading(node, name, *buffer));
    } else if (may_update && random_.one_in(2)) {
      parameters.push_back(read_write(name, {.buffer = buffer->id}));
      take(buffer->id);
      has_written(node, name, *buffer);
    } else if (may_define && may_be_defined(buffer->id) && (!buffer->is_defined || random_.one_in(2))) {
      parameters.push_back(write(name, {.buffer = buffer->id}));
      scopes_.back().defined.insert(buffer->id);
      has_written(node, name, *buffer);
    } else if (buffer->is_defined) {
      parameters.push_back(reading(node, name, *buffer));
    }
  }

  Random& random_;
  Builder b_;
  Within within_;
  std::vector<ScopeUses> scopes_{1};
  std::vector<KnownBuffer> buffers_;
  std::size_t nodes_ = 0, regions_ = 0;
};

std::vector<MixedPin> pins_of(const Arguments& call) {
  std::vector<MixedPin> out;
  for (std::size_t i = 1; i < call.size(); ++i) {
    const Argument& argument = call.argument(i);
    auto words = call.values<std::int64_t>(i);
    if (argument.access == Access::read && argument.counter != nullptr) words = words.first(call.count(i));
    out.push_back({argument.access, words, [&call, i](std::int64_t word) { call.append(i, word); }});
  }
  return out;
}

}  // namespace

KernelFunction tessera::differential::mixing_kernel(std::int64_t salt) {
  return [salt](KernelCall& call) { mix(salt, call.integer(0), pins_of(call)); };
}

/// Holds the pointers and the number that it saw, unless the number lies in memory.
CaptureFunction tessera::differential::mixing_capture(std::int64_t salt) {
  return [salt](CaptureCall& call) {
    const bool is_far = call.argument(0).device_value != nullptr;
    const double* far = is_far ? call.device_number(0) : nullptr;
    const std::int64_t near = is_far ? 0 : call.integer(0);
    std::vector<MixedPin> pins = pins_of(call);
    for (MixedPin& pin : pins) pin.append = nullptr;  // the call is gone when it runs
    call.record("mix", [salt, far, near, pins] {
      mix(salt, far == nullptr ? near : static_cast<std::int64_t>(*far), pins);
    });
  };
}

Description tessera::differential::random_description(Random& random) { return Generator(random).make(); }
