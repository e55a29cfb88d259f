// A graph description: nodes wired by hand instead of tensor code. Plain data, made by Builder (builder.h) or
// read from JSON (read_json.h), checked as a whole by validate (validate.h).
//
// A node calls an op of the catalogue, a kernel, or a library whose calls are captured. Each of its
// parameters is a number, or a pin that reads, writes, updates or appends to one buffer. A pin has its buffer
// by name or by an edge from the pin that wrote it; a writing pin with neither gets a buffer of its own. What
// must come before what follows from these accesses (program_order.h); edges and dependencies go first where
// they say more.
//
// A region is a piece of control flow. Nodes and regions name the region, and the branch of it, that they
// stand in.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "tessera/base/reflect.h"
#include "tessera/ir/attribute.h"
#include "tessera/op/array.h"

namespace tessera::description {

using ir::Dtype;
using op::Extents;

enum class Access : std::uint8_t {
  read,
  write,       ///< defines the whole value; does not look at the old one
  read_write,  ///< updates in place
  append,      ///< adds rows at the end; how many is counted beside the buffer, from 0 in every launch
};
[[nodiscard]] std::string_view to_string(Access access);
[[nodiscard]] constexpr bool reads(Access a) { return a == Access::read || a == Access::read_write; }
[[nodiscard]] constexpr bool writes(Access a) { return a != Access::read; }

enum class Lifetime : std::uint8_t {
  external,  ///< the caller's: never pooled, aliased or resized
  graph,     ///< as long as the plan: zero at first, keeps its content from launch to launch
  region,  ///< within one run of its region (without one: of the launch); the memory serves others outside it
};
[[nodiscard]] std::string_view to_string(Lifetime lifetime);

enum class NodeKind : std::uint8_t { op, kernel, captured };
[[nodiscard]] std::string_view to_string(NodeKind kind);

enum class RegionKind : std::uint8_t { if_, switch_, while_, for_ };
[[nodiscard]] std::string_view to_string(RegionKind kind);
[[nodiscard]] constexpr bool is_loop(RegionKind kind) {
  return kind == RegionKind::while_ || kind == RegionKind::for_;
}

/// Where something was written: a file of Description::files, line and column from 1; line 0 is unknown.
struct Place {
  std::uint32_t file = 0;
  std::uint32_t line = 0;
  std::uint32_t column = 0;

  static constexpr auto fields() {
    return std::tuple{usual("file", &Place::file), usual("line", &Place::line),
                      usual("column", &Place::column)};
  }
};

using ScalarValue = std::variant<std::int64_t, double>;

struct Parameter {
  std::string name;
  Access access = Access::read;
  /// Set: the parameter is a number, not a pin.
  std::optional<ScalarValue> scalar;
  /// Of a captured node's number: the library reads it from memory at every launch, so that no capture holds
  /// it.
  bool in_device_memory = false;
  std::optional<Dtype> dtype;
  std::string shape;   ///< a shape rule (shape_rule.h); empty: any shape
  std::string buffer;  ///< its buffer; empty: by an edge, or one of its own
  bool required = true;
  Place at;
  Place shape_at;

  static constexpr auto fields() {
    return std::tuple{
        usual("name", &Parameter::name),     usual("access", &Parameter::access),
        usual("scalar", &Parameter::scalar), usual("in_device_memory", &Parameter::in_device_memory),
        usual("dtype", &Parameter::dtype),   usual("shape", &Parameter::shape),
        usual("buffer", &Parameter::buffer), usual("required", &Parameter::required),
        usual("at", &Parameter::at),         usual("shape_at", &Parameter::shape_at)};
  }
};

/// Names the region a thing stands in, and the branch: 0 is the body, the `then` or the first case.
struct Within {
  std::string region;  ///< empty: none
  std::int64_t branch = 0;

  bool operator==(const Within&) const = default;

  static constexpr auto fields() {
    return std::tuple{usual("region", &Within::region), usual("branch", &Within::branch)};
  }
};

/// The code of a kernel on a device, from a file.
struct KernelFile {
  /// CUDA C++, .ptx or .cubin; below the folder of the description if it is relative. JSON names no other.
  std::string file;
  std::string entry;                                  ///< the function; empty: the name of the kernel
  std::array<std::int64_t, 3> threads = {256, 1, 1};  ///< of a block

  bool operator==(const KernelFile&) const = default;

  static constexpr auto fields() {
    return std::tuple{usual("file", &KernelFile::file), usual("entry", &KernelFile::entry),
                      usual("threads", &KernelFile::threads)};
  }
};

struct Node {
  std::string id;
  std::string block;
  Within within;
  NodeKind kind = NodeKind::kernel;
  std::string call;                ///< the op, the kernel, or the capture
  ir::Attributes attributes;       ///< of an op
  std::optional<KernelFile> code;  ///< of a kernel
  /// What it calls was given with it: no other process knows it by its name.
  bool is_anonymous = false;
  std::array<std::int64_t, 3> grid = {1, 1, 1};
  std::vector<Parameter> parameters;
  Place at;
  /// A part of it could not be read, which has been reported: what follows from the missing part is not.
  bool incomplete = false;

  static constexpr auto fields() {
    return std::tuple{usual("id", &Node::id),         usual("block", &Node::block),
                      usual("within", &Node::within), usual("kind", &Node::kind),
                      usual("call", &Node::call),     usual("attributes", &Node::attributes),
                      usual("code", &Node::code),     usual("is_anonymous", &Node::is_anonymous),
                      usual("grid", &Node::grid),     usual("parameters", &Node::parameters),
                      usual("at", &Node::at),         usual("incomplete", &Node::incomplete)};
  }
};

struct Buffer {
  std::string id;
  Lifetime lifetime = Lifetime::graph;
  Dtype dtype = Dtype::f32;
  Extents shape;
  std::string region;  ///< of a region buffer: where it lives
  Place at;
  bool incomplete = false;  ///< as of a node

  static constexpr auto fields() {
    return std::tuple{usual("id", &Buffer::id),
                      usual("lifetime", &Buffer::lifetime),
                      usual("dtype", &Buffer::dtype),
                      usual("shape", &Buffer::shape),
                      usual("region", &Buffer::region),
                      usual("at", &Buffer::at),
                      usual("incomplete", &Buffer::incomplete)};
  }
};

/// A parameter of a node, by position or by name.
struct PinName {
  std::string node;
  std::variant<std::int64_t, std::string> parameter;

  bool operator==(const PinName&) const = default;

  static constexpr auto fields() {
    return std::tuple{usual("node", &PinName::node), usual("parameter", &PinName::parameter)};
  }
};

struct Edge {
  PinName from;
  PinName to;
  Place at;
  bool incomplete = false;  ///< as of a node

  static constexpr auto fields() {
    return std::tuple{usual("from", &Edge::from), usual("to", &Edge::to), usual("at", &Edge::at),
                      usual("incomplete", &Edge::incomplete)};
  }
};

/// Nodes or regions.
struct Dependency {
  std::string before;
  std::string after;
  Place at;

  static constexpr auto fields() {
    return std::tuple{usual("before", &Dependency::before), usual("after", &Dependency::after),
                      usual("at", &Dependency::at)};
  }
};

struct Region {
  std::string id;
  std::string block;
  Within within;
  RegionKind kind = RegionKind::if_;
  std::int64_t branches = 1;  ///< if: 1, with an else 2; switch: the cases
  /// if, while: runs while the first element is not 0. switch: the case. for: the count, if there is no
  /// number.
  std::string condition;
  std::optional<std::int64_t> count;  ///< for
  std::string index;                  ///< for: a buffer that is given the number of the iteration, or empty
  std::int64_t limit = 1'000'000;     ///< while, for: the most iterations
  Place at;
  bool incomplete = false;  ///< as of a node

  static constexpr auto fields() {
    return std::tuple{usual("id", &Region::id),
                      usual("block", &Region::block),
                      usual("within", &Region::within),
                      usual("kind", &Region::kind),
                      usual("branches", &Region::branches),
                      usual("condition", &Region::condition),
                      usual("count", &Region::count),
                      usual("index", &Region::index),
                      usual("limit", &Region::limit),
                      usual("at", &Region::at),
                      usual("incomplete", &Region::incomplete)};
  }
};

struct Block {
  std::string id;
  std::string parent;
  Place at;

  static constexpr auto fields() {
    return std::tuple{usual("id", &Block::id), usual("parent", &Block::parent), usual("at", &Block::at)};
  }
};

struct Description {
  std::string name;
  std::vector<std::string> files;
  std::vector<Block> blocks;
  std::vector<Buffer> buffers;
  std::vector<Node> nodes;
  std::vector<Edge> edges;
  std::vector<Dependency> dependencies;
  std::vector<Region> regions;

  [[nodiscard]] SourceSpan span_of(const Place& place) const;

  static constexpr auto fields() {
    return std::tuple{usual("name", &Description::name),
                      usual("files", &Description::files),
                      usual("blocks", &Description::blocks),
                      usual("buffers", &Description::buffers),
                      usual("nodes", &Description::nodes),
                      usual("edges", &Description::edges),
                      usual("dependencies", &Description::dependencies),
                      usual("regions", &Description::regions)};
  }
};

/// A block with those around it: "encoder/layer1".
[[nodiscard]] std::string block_path(const Description& description, std::string_view block);

}  // namespace tessera::description
