#include "tessera/describe/read_json.h"

#include <algorithm>

#include "tessera/base/open_file.h"
#include "tessera/describe/source_places.h"

using namespace tessera;
using namespace tessera::description;

namespace {

constexpr std::size_t most_problems = 1'000;

/// Whether enough is wrong: a list of millions of wrong items would take hours to complain about.
bool is_full(const Report& problems) { return problems.diagnostics().size() >= most_problems; }

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
  return json.kind() == Json::Kind::number && json.number().find_first_of(".eE") == std::string_view::npos;
}

Result<ScalarValue> read_scalar(const JsonCursor& json) {
  if (json.is(Json::Kind::boolean)) return ScalarValue(std::int64_t{json.value().boolean()});
  if (is_integer(json.value())) return ScalarValue(TESSERA_TRY(json.integer()));
  return ScalarValue(TESSERA_TRY(json.number()));
}

Result<ir::AttributeValue> read_list_attribute(const JsonCursor& json) {
  std::vector<std::int64_t> integers;
  std::vector<double> numbers;
  for (const JsonCursor item : TESSERA_TRY(json.array())) {
    numbers.push_back(TESSERA_TRY(item.number()));
    if (is_integer(item.value())) integers.push_back(TESSERA_TRY(item.integer()));
  }
  if (integers.size() == numbers.size()) return ir::AttributeValue(std::move(integers));
  return ir::AttributeValue(std::move(numbers));
}

Result<ir::AttributeValue> read_attribute(const JsonCursor& json) {
  if (json.is(Json::Kind::boolean)) return ir::AttributeValue(json.value().boolean());
  if (json.is(Json::Kind::string)) return ir::AttributeValue(json.value().text());
  if (json.is(Json::Kind::array)) return read_list_attribute(json);
  if (is_integer(json.value())) return ir::AttributeValue(TESSERA_TRY(json.integer()));
  return ir::AttributeValue(TESSERA_TRY(json.number()));
}

Result<std::string> read_text(const JsonCursor& json) { return json.string(); }
Result<std::int64_t> read_integer(const JsonCursor& json) { return json.integer(); }
Result<bool> read_flag(const JsonCursor& json) { return json.boolean(); }

Result<Lifetime> read_lifetime(const JsonCursor& json) {
  return read_word(json, {Lifetime::external, Lifetime::graph, Lifetime::region});
}
Result<Access> read_access(const JsonCursor& json) {
  return read_word(json, {Access::read, Access::write, Access::read_write, Access::append});
}

Result<std::string> read_rule(const JsonCursor& json) {
  std::string out = TESSERA_TRY(json.string());
  if (out.empty()) return json.error("expected a shape rule, got an empty string");
  return out;
}

Result<std::int64_t> read_branch(const JsonCursor& json) {
  if (json.is(Json::Kind::number)) return json.integer();
  const std::string word = TESSERA_TRY(json.string());
  if (word != "then" && word != "else") return json.error("expected then, else or a number");
  return word == "else" ? 1 : 0;
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

/// Reads an object field by field. Each that is wrong is reported, with whom it belongs to, and keeps its
/// default; the others are read.
class Fields {
 public:
  Fields(const JsonCursor& object, Report& problems) : object_(object), problems_(problems) {
    if (!object.is(Json::Kind::object)) fail(object.only_fields({}).error());
  }

  /// From now on problems belong to this node, region or parameter.
  void belong_to(Diagnostic owner) { owner_ = std::move(owner); }
  [[nodiscard]] const Diagnostic& owner() const { return owner_; }
  [[nodiscard]] const JsonCursor& object() const { return object_; }
  /// Whether all that was read so far could be.
  [[nodiscard]] bool ok() const { return is_ok_; }

  void only(std::initializer_list<std::string_view> keys) {
    if (is_object())
      for (const Error& error : object_.unknown_fields(keys, most_problems)) fail(error);
  }

  /// A field that must be there.
  template <class T, class Read>
  void need(std::string_view key, T& to, const Read& read) {
    if (!is_object()) return;
    const auto field = object_.field(key);
    if (!field) return fail(field.error());
    put(*field, to, read);
  }

  /// A field that may be left out; false if it is.
  template <class T, class Read>
  bool take(std::string_view key, T& to, const Read& read) {
    const auto field = find(key);
    if (field) put(*field, to, read);
    return field.has_value();
  }

  /// The elements of a list that must be there.
  template <class List, class Read>
  void need_list(std::string_view key, List& to, const Read& read) {
    if (!is_object()) return;
    const auto field = object_.field(key);
    if (!field) return fail(field.error());
    list(*field, to, read);
  }
  /// Those of a list; one that is wrong is left out.
  template <class List, class Read>
  void list(const JsonCursor& field, List& to, const Read& read) {
    const auto items = field.array();
    if (!items) return fail(items.error());
    for (const JsonCursor item : *items) {
      if (is_full(problems_)) return;
      if (auto one = read(item))
        to.push_back(*std::move(one));
      else
        fail(one.error());
    }
  }

  [[nodiscard]] std::optional<JsonCursor> find(std::string_view key) const {
    if (!is_object()) return std::nullopt;
    auto field = object_.optional_field(key);
    return field ? *std::move(field) : std::nullopt;
  }

  void fail(const Error& error) {
    is_ok_ = false;
    Diagnostic out = owner_;
    out.code = ErrorCode::parse;
    out.message = error.message();
    out.at = error.span();
    problems_.add(std::move(out));
  }

 private:
  [[nodiscard]] bool is_object() const { return object_.is(Json::Kind::object); }

  template <class T, class Read>
  void put(const JsonCursor& field, T& to, const Read& read) {
    auto value = read(field);
    if (value)
      to = *std::move(value);
    else
      fail(value.error());
  }

  const JsonCursor& object_;
  Report& problems_;
  Diagnostic owner_;
  bool is_ok_ = true;
};

class DescriptionReader {
 public:
  explicit DescriptionReader(const JsonDocument& document)
      : root_(document.cursor()), places_(document.source().text()) {
    out_.description.files.push_back(document.source().file());
  }

  Reading read() {
    Description& d = out_.description;
    Fields root(root_, out_.problems);
    root.only({"name", "comment", "blocks", "buffers", "nodes", "edges", "dependencies", "regions"});
    root.take("name", d.name, read_text);
    read_list(root, "blocks", d.blocks, &DescriptionReader::read_block);
    read_list(root, "buffers", d.buffers, &DescriptionReader::read_buffer);
    read_list(root, "nodes", d.nodes, &DescriptionReader::read_node);
    read_list(root, "edges", d.edges, &DescriptionReader::read_edge);
    read_list(root, "dependencies", d.dependencies, &DescriptionReader::read_dependency);
    read_list(root, "regions", d.regions, &DescriptionReader::read_region);
    return std::move(out_);
  }

 private:
  /// Reads a list; one that is wrong is kept if others may name it, or if it says who lacks something.
  template <class T>
  void read_list(Fields& root, std::string_view key, std::vector<T>& out,
                 void (DescriptionReader::*read)(Fields&, T&)) {
    const auto field = root.find(key);
    if (!field) return;
    const auto items = field->array();
    if (!items) return root.fail(items.error());
    for (const JsonCursor json : *items) {
      if (is_full(out_.problems)) return;
      T one;
      one.at = places_.at(json.value().offset());
      Fields fields(json, out_.problems);
      (this->*read)(fields, one);
      bool is_kept = fields.ok();
      if constexpr (requires { one.id; }) is_kept |= !one.id.empty();
      if constexpr (requires { one.to.node; }) is_kept |= !one.to.node.empty();
      if constexpr (requires { one.incomplete; }) one.incomplete |= !fields.ok();
      if (is_kept) out.push_back(std::move(one));
      if (out_.problems.errors() >= most_problems) return;
    }
  }

  static void read_within(Fields& fields, Within& out) {
    fields.take("region", out.region, read_text);
    fields.take("branch", out.branch, read_branch);
  }

  void read_block(Fields& fields, Block& out) {
    fields.need("id", out.id, read_text);
    fields.belong_to({.block = out.id});
    fields.only({"id", "parent", "comment"});
    fields.take("parent", out.parent, read_text);
  }

  void read_buffer(Fields& fields, Buffer& out) {
    fields.need("id", out.id, read_text);
    fields.only({"id", "lifetime", "dtype", "shape", "region", "comment"});
    fields.need("lifetime", out.lifetime, read_lifetime);
    fields.need("dtype", out.dtype, read_dtype);
    fields.need_list("shape", out.shape, read_integer);
    fields.take("region", out.region, read_text);
  }

  void read_node(Fields& fields, Node& out) {
    fields.need("id", out.id, read_text);
    fields.belong_to({.node = out.id});
    fields.take("block", out.block, read_text);
    fields.belong_to({.block = out.block, .node = out.id});
    if (const auto parameters = fields.find("parameters")) read_parameters(fields, *parameters, out);
    fields.only({"id", "block", "op", "kernel", "captured", "attributes", "source", "entry", "threads",
                 "grid", "parameters", "region", "branch", "comment"});
    read_call(fields, out);
    read_within(fields, out.within);
    if (const auto grid = fields.find("grid")) read_sizes(fields, *grid, out.grid);
    read_code(fields, out);
  }

  static void read_sizes(Fields& fields, const JsonCursor& json, std::array<std::int64_t, 3>& out) {
    std::vector<std::int64_t> sizes;
    fields.list(json, sizes, read_integer);
    const auto given = json.array();
    if (given && (given->empty() || given->size() > 3))
      return fields.fail(json.error("expected one to three sizes"));
    std::copy(sizes.begin(), sizes.end(), out.begin());
  }

  /// The file of a kernel on a device.
  static void read_code(Fields& fields, Node& out) {
    const auto source = fields.find("source");
    for (const char* key : {"source", "entry", "threads"})
      if (const auto field = fields.find(key); field && (out.kind != NodeKind::kernel || !source))
        fields.fail(field->error("only a kernel with a source has this"));
    if (!source) return;
    KernelFile code;
    fields.take("source", code.file, [](const JsonCursor& json) -> Result<std::string> {
      std::string file = TESSERA_TRY(json.string());
      if (file.empty()) return json.error("expected the name of a file, got an empty string");
      if (!is_path_below(file))
        return json.error("expected the name of a file in the folder of the description");
      return file;
    });
    fields.take("entry", code.entry, read_text);
    if (const auto threads = fields.find("threads")) read_sizes(fields, *threads, code.threads);
    out.code = std::move(code);
  }

  static void read_call(Fields& fields, Node& out) {
    int given = 0;
    for (const NodeKind kind : {NodeKind::op, NodeKind::kernel, NodeKind::captured})
      if (fields.take(to_string(kind), out.call, read_text)) {
        out.kind = kind;
        ++given;
      }
    if (given != 1) fields.fail(fields.object().error("expected one of the fields op, kernel, captured"));
    const auto attributes = fields.find("attributes");
    if (!attributes) return;
    if (out.kind != NodeKind::op) fields.fail(attributes->error("only an op has attributes"));
    const auto members = attributes->members();
    if (!members) return fields.fail(members.error());
    for (const auto& [name, json] : *members)
      if (auto value = read_attribute(json))
        out.attributes.set(name, *std::move(value));
      else
        fields.fail(value.error());
  }

  /// A parameter that is wrong leaves the others as they are.
  void read_parameters(Fields& node_fields, const JsonCursor& list, Node& node) {
    const auto items = list.array();
    if (!items) return node_fields.fail(items.error());
    for (const JsonCursor json : *items) {
      Parameter& out = node.parameters.emplace_back();
      out.at = places_.at(json.value().offset());
      Fields fields(json, out_.problems);
      fields.belong_to(node_fields.owner());
      read_parameter(fields, out);
      node.incomplete |= !fields.ok();
    }
  }

  void read_parameter(Fields& fields, Parameter& out) {
    fields.need("name", out.name, read_text);
    Diagnostic owner = fields.owner();
    owner.parameter = out.name;
    fields.belong_to(std::move(owner));
    fields.only(
        {"name", "access", "scalar", "in_device_memory", "dtype", "shape", "buffer", "required", "comment"});
    fields.take("access", out.access, read_access);
    fields.take("scalar", out.scalar, read_scalar);
    fields.take("in_device_memory", out.in_device_memory, read_flag);
    fields.take("dtype", out.dtype, read_dtype);
    fields.take("shape", out.shape, read_rule);
    if (const auto shape = fields.find("shape")) out.shape_at = places_.at(shape->value().offset());
    fields.take("buffer", out.buffer, read_text);
    fields.take("required", out.required, read_flag);
  }

  void read_edge(Fields& fields, Edge& out) {
    fields.only({"from", "to", "comment"});
    fields.need("from", out.from, read_pin);
    fields.need("to", out.to, read_pin);
  }

  void read_dependency(Fields& fields, Dependency& out) {
    fields.only({"before", "after", "comment"});
    fields.need("before", out.before, read_text);
    fields.need("after", out.after, read_text);
  }

  void read_region(Fields& fields, Region& out) {
    fields.need("id", out.id, read_text);
    fields.belong_to({.node = out.id, .is_region = true});
    fields.take("block", out.block, read_text);
    fields.belong_to({.block = out.block, .node = out.id, .is_region = true});
    fields.only({"id", "block", "kind", "condition", "count", "index", "limit", "branches", "region",
                 "branch", "comment"});
    fields.need("kind", out.kind, [&](const JsonCursor& json) { return read_kind(json, out); });
    read_within(fields, out.within);
    fields.take("condition", out.condition, read_text);
    fields.take("index", out.index, read_text);
    fields.take("limit", out.limit, read_integer);
    fields.take("branches", out.branches, read_integer);
    const auto count = fields.find("count");
    if (count && count->is(Json::Kind::string)) {
      if (!out.condition.empty()) return fields.fail(count->error("the region has a condition already"));
      out.condition = count->value().text();
    } else if (count) {
      fields.take("count", out.count, read_integer);
    }
  }

  static Result<RegionKind> read_kind(const JsonCursor& json, Region& out) {
    if (TESSERA_TRY(json.string()) == "if_else") {
      out.branches = 2;
      return RegionKind::if_;
    }
    return read_word(json, {RegionKind::if_, RegionKind::switch_, RegionKind::while_, RegionKind::for_});
  }

  JsonCursor root_;
  SourcePlaces places_;
  Reading out_;
};

}  // namespace

Result<Reading> tessera::description::read_description(std::string file, std::string text) {
  const JsonDocument document = TESSERA_TRY(JsonDocument::parse(std::move(file), std::move(text)));
  if (document.root().kind() != Json::Kind::object) return document.cursor().error("expected an object");
  return DescriptionReader(document).read();
}
