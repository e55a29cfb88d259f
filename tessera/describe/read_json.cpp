#include "tessera/describe/read_json.h"

#include <functional>

#include "tessera/describe/source_places.h"

using namespace tessera;
using namespace tessera::description;

namespace {

constexpr std::size_t most_problems = 1'000;

template <class Enum>
Result<Enum> read_word(const JsonCursor& json, std::initializer_list<Enum> all) {
  const std::string word = TESSERA_TRY(json.string());
  std::vector<std::string_view> names;
  for (Enum one : all) {
    if (to_string(one) == word) return one;
    names.push_back(to_string(one));
  }
  return json.error(cat("expected one of ", join(names, ", "), ", got ", quote(shortened(word, 40))));
}

Result<Dtype> read_dtype(const JsonCursor& json) {
  const std::string name = TESSERA_TRY(json.string());
  if (const auto dtype = ir::parse_dtype(name)) return *dtype;
  return json.error(cat("unknown dtype ", quote(shortened(name, 40)), ", expected one like \"f32\""));
}

bool is_integer(const Json& json) {
  return json.kind == Json::Kind::number && json.text.find_first_of(".eE") == std::string::npos;
}

Result<ScalarValue> read_scalar(const JsonCursor& json) {
  if (json.is(Json::Kind::boolean)) return ScalarValue(std::int64_t{json.value().boolean});
  if (is_integer(json.value())) return ScalarValue(TESSERA_TRY(json.integer()));
  return ScalarValue(TESSERA_TRY(json.number()));
}

Result<ir::AttributeValue> read_list_attribute(const JsonCursor& json) {
  std::vector<std::int64_t> integers;
  std::vector<double> numbers;
  for (const JsonCursor& item : TESSERA_TRY(json.array())) {
    numbers.push_back(TESSERA_TRY(item.number()));
    if (is_integer(item.value())) integers.push_back(TESSERA_TRY(item.integer()));
  }
  if (integers.size() == numbers.size()) return ir::AttributeValue(std::move(integers));
  return ir::AttributeValue(std::move(numbers));
}

Result<ir::AttributeValue> read_attribute(const JsonCursor& json) {
  if (json.is(Json::Kind::boolean)) return ir::AttributeValue(json.value().boolean);
  if (json.is(Json::Kind::string)) return ir::AttributeValue(json.value().text);
  if (json.is(Json::Kind::array)) return read_list_attribute(json);
  if (is_integer(json.value())) return ir::AttributeValue(TESSERA_TRY(json.integer()));
  return ir::AttributeValue(TESSERA_TRY(json.number()));
}

/// A text field that may be absent.
Result<std::string> read_name(const JsonCursor& object, std::string_view key) {
  const auto field = TESSERA_TRY(object.optional_field(key));
  return field ? field->string() : std::string();
}

class DescriptionReader {
 public:
  explicit DescriptionReader(const JsonDocument& document)
      : root_(document.cursor()), places_(document.source().text()) {
    out_.description.files.push_back(document.source().file());
  }

  Reading read() {
    Description& d = out_.description;
    keep(root_.only_fields(
        {"name", "comment", "blocks", "buffers", "nodes", "edges", "dependencies", "regions"}));
    if (auto name = read_name(root_, "name"))
      d.name = *std::move(name);
    else
      keep(std::move(name).error());
    read_list("blocks", d.blocks, [&](const JsonCursor& json, Block& out) { return read_block(json, out); });
    read_list("buffers", d.buffers,
              [&](const JsonCursor& json, Buffer& out) { return read_buffer(json, out); });
    read_list("nodes", d.nodes, [&](const JsonCursor& json, Node& out) { return read_node(json, out); });
    read_list("edges", d.edges, [&](const JsonCursor& json, Edge& out) { return read_edge(json, out); });
    read_list("dependencies", d.dependencies,
              [&](const JsonCursor& json, Dependency& out) { return read_dependency(json, out); });
    read_list("regions", d.regions,
              [&](const JsonCursor& json, Region& out) { return read_region(json, out); });
    return std::move(out_);
  }

 private:
  /// Reads a list; one that is wrong is reported and, if others may name it, kept.
  template <class T, class Read>
  void read_list(std::string_view key, std::vector<T>& out, Read&& read) {
    const auto field = root_.optional_field(key);
    if (!field || !*field) return;
    const auto items = (*field)->array();
    if (!items) return keep(items.error());
    out.reserve(items->size());
    for (const JsonCursor& json : *items) {
      T one;
      one.at = places_.at(json.value().offset);
      const Result<void> done = read(json, one);
      if (!done) keep(done.error(), one);
      bool is_kept = done.ok();
      if constexpr (requires { one.id; }) is_kept |= !one.id.empty();
      if constexpr (requires { one.incomplete; }) one.incomplete |= !done.ok();
      if (is_kept) out.push_back(std::move(one));
      if (out_.problems.errors() >= most_problems) return;
    }
  }

  Result<void> read_block(const JsonCursor& json, Block& out) {
    out.id = TESSERA_TRY(TESSERA_TRY(json.field("id")).string());
    TESSERA_TRY(json.only_fields({"id", "parent", "comment"}));
    out.parent = TESSERA_TRY(read_name(json, "parent"));
    return {};
  }

  Result<void> read_buffer(const JsonCursor& json, Buffer& out) {
    out.id = TESSERA_TRY(TESSERA_TRY(json.field("id")).string());
    TESSERA_TRY(json.only_fields({"id", "lifetime", "dtype", "shape", "region", "comment"}));
    out.lifetime = TESSERA_TRY(read_word(TESSERA_TRY(json.field("lifetime")),
                                         {Lifetime::external, Lifetime::graph, Lifetime::region}));
    out.dtype = TESSERA_TRY(read_dtype(TESSERA_TRY(json.field("dtype"))));
    for (const JsonCursor& size : TESSERA_TRY(TESSERA_TRY(json.field("shape")).array()))
      out.shape.push_back(TESSERA_TRY(size.integer()));
    out.region = TESSERA_TRY(read_name(json, "region"));
    return {};
  }

  Result<void> read_node(const JsonCursor& json, Node& out) {
    out.id = TESSERA_TRY(TESSERA_TRY(json.field("id")).string());
    out.block = TESSERA_TRY(read_name(json, "block"));
    if (const auto parameters = TESSERA_TRY(json.optional_field("parameters")))
      for (const JsonCursor& item : TESSERA_TRY(parameters->array())) read_one_parameter(item, out);
    TESSERA_TRY(json.only_fields({"id", "block", "op", "kernel", "captured", "attributes", "source", "entry",
                                  "threads", "grid", "parameters", "region", "branch", "comment"}));
    TESSERA_TRY(read_call(json, out));
    out.within = TESSERA_TRY(read_within(json));
    if (const auto grid = TESSERA_TRY(json.optional_field("grid"))) TESSERA_TRY(read_sizes(*grid, out.grid));
    return read_code(json, out);
  }

  Result<void> read_sizes(const JsonCursor& json, std::array<std::int64_t, 3>& out) {
    const auto sizes = TESSERA_TRY(json.array());
    if (sizes.empty() || sizes.size() > 3) return json.error("expected one to three sizes");
    for (std::size_t i = 0; i < sizes.size(); ++i) out[i] = TESSERA_TRY(sizes[i].integer());
    return {};
  }

  /// The file of a kernel on a device.
  Result<void> read_code(const JsonCursor& json, Node& out) {
    const auto source = TESSERA_TRY(json.optional_field("source"));
    const auto entry = TESSERA_TRY(json.optional_field("entry"));
    const auto threads = TESSERA_TRY(json.optional_field("threads"));
    for (const auto& field : {source, entry, threads})
      if (field && (out.kind != NodeKind::kernel || !source))
        return field->error("only a kernel with a source has this");
    if (!source) return {};
    KernelFile code{.file = TESSERA_TRY(source->string())};
    if (code.file.empty()) return source->error("expected the name of a file, got an empty string");
    if (entry) code.entry = TESSERA_TRY(entry->string());
    if (threads) TESSERA_TRY(read_sizes(*threads, code.threads));
    out.code = std::move(code);
    return {};
  }

  Result<void> read_call(const JsonCursor& json, Node& out) {
    int given = 0;
    for (NodeKind kind : {NodeKind::op, NodeKind::kernel, NodeKind::captured})
      if (const auto call = TESSERA_TRY(json.optional_field(to_string(kind)))) {
        out.kind = kind;
        out.call = TESSERA_TRY(call->string());
        ++given;
      }
    if (given != 1) return json.error("expected one of the fields op, kernel, captured");
    const auto attributes = TESSERA_TRY(json.optional_field("attributes"));
    if (attributes && out.kind != NodeKind::op) return attributes->error("only an op has attributes");
    if (attributes)
      for (const auto& [name, value] : TESSERA_TRY(attributes->members()))
        out.attributes.set(name, TESSERA_TRY(read_attribute(value)));
    return {};
  }

  /// A parameter that is wrong leaves the others as they are.
  void read_one_parameter(const JsonCursor& json, Node& node) {
    Parameter out;
    out.at = places_.at(json.value().offset);
    const Result<void> done = read_parameter(json, out);
    if (!done) {
      node.incomplete = true;
      keep(done.error(), node, out.name);
    }
    node.parameters.push_back(std::move(out));
  }

  Result<void> read_parameter(const JsonCursor& json, Parameter& out) {
    out.name = TESSERA_TRY(TESSERA_TRY(json.field("name")).string());
    TESSERA_TRY(json.only_fields(
        {"name", "access", "scalar", "in_device_memory", "dtype", "shape", "buffer", "required", "comment"}));
    if (const auto access = TESSERA_TRY(json.optional_field("access")))
      out.access =
          TESSERA_TRY(read_word(*access, {Access::read, Access::write, Access::read_write, Access::append}));
    if (const auto scalar = TESSERA_TRY(json.optional_field("scalar")))
      out.scalar = TESSERA_TRY(read_scalar(*scalar));
    if (const auto flag = TESSERA_TRY(json.optional_field("in_device_memory")))
      out.in_device_memory = TESSERA_TRY(flag->boolean());
    if (const auto dtype = TESSERA_TRY(json.optional_field("dtype")))
      out.dtype = TESSERA_TRY(read_dtype(*dtype));
    if (const auto shape = TESSERA_TRY(json.optional_field("shape"))) {
      out.shape = TESSERA_TRY(shape->string());
      out.shape_at = places_.at(shape->value().offset);
      if (out.shape.empty()) return shape->error("expected a shape rule, got an empty string");
    }
    out.buffer = TESSERA_TRY(read_name(json, "buffer"));
    if (const auto required = TESSERA_TRY(json.optional_field("required")))
      out.required = TESSERA_TRY(required->boolean());
    return {};
  }

  Result<Within> read_within(const JsonCursor& json) {
    Within out{.region = TESSERA_TRY(read_name(json, "region"))};
    const auto branch = TESSERA_TRY(json.optional_field("branch"));
    if (!branch) return out;
    if (branch->is(Json::Kind::number)) {
      out.branch = TESSERA_TRY(branch->integer());
      return out;
    }
    const std::string word = TESSERA_TRY(branch->string());
    if (word != "then" && word != "else") return branch->error("expected then, else or a number");
    out.branch = word == "else" ? 1 : 0;
    return out;
  }

  Result<void> read_edge(const JsonCursor& json, Edge& out) {
    TESSERA_TRY(json.only_fields({"from", "to", "comment"}));
    out.from = TESSERA_TRY(read_pin(TESSERA_TRY(json.field("from"))));
    out.to = TESSERA_TRY(read_pin(TESSERA_TRY(json.field("to"))));
    return {};
  }
  Result<PinName> read_pin(const JsonCursor& json) {
    const auto parts = TESSERA_TRY(json.array());
    if (parts.size() != 2) return json.error("expected a node and a parameter: [\"node\", \"parameter\"]");
    PinName out{.node = TESSERA_TRY(parts[0].string())};
    if (parts[1].is(Json::Kind::number))
      out.parameter = TESSERA_TRY(parts[1].integer());
    else
      out.parameter = TESSERA_TRY(parts[1].string());
    return out;
  }

  Result<void> read_dependency(const JsonCursor& json, Dependency& out) {
    TESSERA_TRY(json.only_fields({"before", "after", "comment"}));
    out.before = TESSERA_TRY(TESSERA_TRY(json.field("before")).string());
    out.after = TESSERA_TRY(TESSERA_TRY(json.field("after")).string());
    return {};
  }

  Result<void> read_region(const JsonCursor& json, Region& out) {
    out.id = TESSERA_TRY(TESSERA_TRY(json.field("id")).string());
    out.block = TESSERA_TRY(read_name(json, "block"));
    TESSERA_TRY(json.only_fields({"id", "block", "kind", "condition", "count", "index", "limit", "branches",
                                  "region", "branch", "comment"}));
    TESSERA_TRY(read_kind(TESSERA_TRY(json.field("kind")), out));
    out.within = TESSERA_TRY(read_within(json));
    out.condition = TESSERA_TRY(read_name(json, "condition"));
    out.index = TESSERA_TRY(read_name(json, "index"));
    if (const auto limit = TESSERA_TRY(json.optional_field("limit")))
      out.limit = TESSERA_TRY(limit->integer());
    if (const auto branches = TESSERA_TRY(json.optional_field("branches")))
      out.branches = TESSERA_TRY(branches->integer());
    const auto count = TESSERA_TRY(json.optional_field("count"));
    if (count && count->is(Json::Kind::string)) {
      if (!out.condition.empty()) return count->error("the region has a condition already");
      out.condition = count->value().text;
    } else if (count) {
      out.count = TESSERA_TRY(count->integer());
    }
    return {};
  }

  Result<void> read_kind(const JsonCursor& json, Region& out) {
    if (TESSERA_TRY(json.string()) == "if_else") {
      out.branches = 2;
      return {};
    }
    out.kind = TESSERA_TRY(
        read_word(json, {RegionKind::if_, RegionKind::switch_, RegionKind::while_, RegionKind::for_}));
    return {};
  }

  void keep(const Result<void>& result) {
    if (!result) keep(result.error());
  }
  void keep(const Error& error) {
    out_.problems.add({.code = ErrorCode::parse, .message = error.message(), .at = error.span()});
  }
  template <class T>
  void keep(const Error& error, const T& owner, std::string_view parameter = "") {
    Diagnostic out{.code = ErrorCode::parse, .message = error.message(), .at = error.span()};
    if constexpr (requires { owner.block; }) {
      out.block = owner.block;
      out.node = owner.id;
    }
    out.parameter = parameter;
    out_.problems.add(std::move(out));
  }

  JsonCursor root_;
  SourcePlaces places_;
  Reading out_;
};

}  // namespace

Result<Reading> tessera::description::read_description(std::string file, std::string text) {
  const JsonDocument document = TESSERA_TRY(JsonDocument::parse(std::move(file), std::move(text)));
  if (document.root().kind != Json::Kind::object) return document.cursor().error("expected an object");
  return DescriptionReader(document).read();
}
