// Protobuf messages become plain data here. A field that cannot be what it says is an error that names the
// file, the owner and the field. Recursion follows nested graphs only, which the decoder of the wire format
// limits to 100 messages inside each other.
#include "tessera/onnx/read.h"

#ifndef ONNX_NAMESPACE
#define ONNX_NAMESPACE onnx
#endif
#ifndef ONNX_ML
#define ONNX_ML 1
#endif
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wall"
#pragma GCC diagnostic ignored "-Wextra"
#pragma GCC diagnostic ignored "-Wpedantic"
#pragma GCC diagnostic ignored "-Wshadow"
#include <google/protobuf/io/coded_stream.h>
#include <onnx/onnx-data_pb.h>
#include <onnx/onnx_pb.h>
#pragma GCC diagnostic pop

#include "tessera/base/checked.h"
#include "tessera/base/file.h"
#include "tessera/base/open_file.h"
#include "tessera/onnx/external_data.h"
#include "tessera/onnx/outline.h"
#include "tessera/onnx/validate.h"

using namespace tessera;
using namespace tessera::onnx;

namespace {

namespace pb = ::onnx;

constexpr int max_message_depth = 100;
constexpr int max_dims = 16;

/// What an element type is here, and how the format calls it.
struct ElementType {
  int number;
  std::string_view name;
  std::optional<Dtype> dtype;
};
constexpr ElementType element_types[] = {
    {1, "float", Dtype::f32},      {2, "uint8", Dtype::u8},         {3, "int8", Dtype::i8},
    {4, "uint16", Dtype::u16},     {5, "int16", Dtype::i16},        {6, "int32", Dtype::i32},
    {7, "int64", Dtype::i64},      {8, "string", std::nullopt},     {9, "bool", Dtype::boolean},
    {10, "float16", Dtype::f16},   {11, "double", Dtype::f64},      {12, "uint32", Dtype::u32},
    {13, "uint64", Dtype::u64},    {14, "complex64", std::nullopt}, {15, "complex128", std::nullopt},
    {16, "bfloat16", Dtype::bf16},
};

const ElementType* element_type(int number) {
  for (const ElementType& type : element_types)
    if (type.number == number) return &type;
  return nullptr;
}

/// Turns messages into plain data, for one file.
class Reader {
 public:
  /// `folder` is where external data may be. `content` is that of the file if tensors
  /// may stay in it.
  Reader(std::string file, const Limits& limits, std::optional<BaseFolder> folder = {}, Bytes content = {})
      : file_(std::move(file)),
        limits_(limits),
        external_(std::move(folder)),
        content_(std::make_shared<const Bytes>(std::move(content))) {}

  template <class... Args>
  Error error(const Args&... args) const {
    return Error(ErrorCode::parse, cat(args...), {file_, 0, 0});
  }

  Result<void> check_size(std::size_t bytes) const {
    if (static_cast<std::int64_t>(bytes) < limits_.file_bytes) return {};
    return Error(ErrorCode::limit,
                 cat("the file has ", bytes, " bytes, at most ", limits_.file_bytes - 1, " are read"),
                 {file_, 0, 0});
  }

  template <class Message>
  Result<void> decode(std::span<const std::byte> bytes, Message& message, std::string_view what) const {
    TESSERA_TRY(check_size(bytes.size()));
    google::protobuf::io::CodedInputStream in(reinterpret_cast<const std::uint8_t*>(bytes.data()),
                                              static_cast<int>(bytes.size()));
    in.SetRecursionLimit(max_message_depth);
    if (bytes.empty()) return error("the file is empty, expected ", what);
    if (!message.ParseFromCodedStream(&in) || !in.ConsumedEntireMessage())
      return error("the file is not ", what, ": its bytes do not decode as protobuf, or nest deeper than ",
                   max_message_depth, " messages");
    return {};
  }

  Result<std::string> name(const std::string& text, std::string_view what) const {
    if (static_cast<std::int64_t>(text.size()) > limits_.name_bytes)
      return Error(ErrorCode::limit,
                   cat(what, " ", shown(text), " has ", text.size(), " bytes, at most ", limits_.name_bytes,
                       " are allowed"),
                   {file_, 0, 0});
    if (!is_valid_utf8(text)) return error(what, " ", shown(text), " is not valid UTF-8");
    return text;
  }

  // ---- tensors

  Result<op::Extents> dims(const pb::TensorProto& from, const std::string& what) const {
    if (from.dims_size() > max_dims)
      return error(what, ": field 'dims' has ", from.dims_size(), " entries, at most ", max_dims,
                   " are allowed");
    op::Extents out;
    for (const std::int64_t dim : from.dims()) {
      if (dim < 0) return error(what, ": field 'dims' has ", dim, ", expected 0 or more");
      out.push_back(dim);
    }
    return out;
  }

  Result<Tensor> tensor(const pb::TensorProto& from, const std::string& owner) {
    Tensor out{TESSERA_TRY(name(from.name(), "tensor name")), {}, {}};
    const std::string what = from.name().empty() ? owner : cat(owner, " ", shown(from.name()));
    const ElementType* type = element_type(from.data_type());
    if (type == nullptr)
      return error(what, ": field 'data_type' is ", from.data_type(), ", which is no element type");
    op::Extents shape = TESSERA_TRY(dims(from, what));
    if (!type->dtype) {
      out.unusable = cat("its elements are of type ", type->name);
      return out;
    }
    if (from.has_segment()) return error(what, ": field 'segment' is not supported");
    const auto count = checked_product(shape);
    const auto bytes =
        count ? checked_mul(*count, static_cast<std::int64_t>(ir::size_of(*type->dtype))) : std::nullopt;
    if (!bytes)
      return error(what, ": field 'dims' [", join(shape, ", "), "] has a product that does not fit");
    // The size of what is there is checked before memory is asked for.
    auto value = from.data_location() == pb::TensorProto::EXTERNAL
                     ? placed(TESSERA_TRY(external(from, *bytes, what)), *type->dtype, shape)
                 : from.has_doc_string() && content_->size() > 0
                     ? placed(TESSERA_TRY(in_content(from, *bytes, what)), *type->dtype, shape)
                     : decoded(from, *type, *count, shape, what);
    if (!value) return std::move(value).error().at({file_, 0, 0}).note(what);
    out.value = *std::move(value);
    return out;
  }

  /// The elements that an outline left in the file.
  Result<Bytes> in_content(const pb::TensorProto& from, std::int64_t bytes, const std::string& what) const {
    const auto place = place_in(from.doc_string());
    if (!place || place->offset > content_->size() || place->length > content_->size() - place->offset)
      return error(what, ": field 'raw_data' lies outside the file");
    if (static_cast<std::int64_t>(place->length) != bytes)
      return error(what, ": field 'raw_data' has ", place->length, " bytes, expected ", bytes);
    return Bytes(content_->span().subspan(place->offset, place->length), content_);
  }

  /// Elements that are in memory: they stay there if they lie as a tensor's do. Booleans are made 0 and 1.
  static Result<HostTensor> placed(const Bytes& raw, Dtype dtype, op::Extents shape) {
    const bool is_aligned = reinterpret_cast<std::uintptr_t>(raw.data()) % ir::size_of(dtype) == 0;
    if (is_aligned && dtype != Dtype::boolean && raw.size() > 0)
      return HostTensor::wrap(dtype, std::move(shape), raw.data(), std::make_shared<const Bytes>(raw));
    HostTensor out = TESSERA_TRY(HostTensor::allocate(dtype, std::move(shape)));
    fill_from(raw.span(), dtype, out);
    return out;
  }

  Result<HostTensor> decoded(const pb::TensorProto& from, const ElementType& type, std::int64_t count,
                             op::Extents shape, const std::string& what) const {
    TESSERA_TRY(check_count(from, type, count, what));
    HostTensor out = TESSERA_TRY(HostTensor::allocate(*type.dtype, std::move(shape)));
    fill(from, *type.dtype, out);
    return out;
  }

  /// The elements in another file, as many bytes as they must be.
  Result<Bytes> external(const pb::TensorProto& from, std::int64_t bytes, const std::string& what) {
    std::vector<std::pair<std::string, std::string>> entries;
    for (const auto& entry : from.external_data()) entries.emplace_back(entry.key(), entry.value());
    auto location = parse_location(entries);
    if (!location) return std::move(location).error().at({file_, 0, 0}).note(what);
    auto found = external_.read(*location);
    if (!found) return std::move(found).error().at({file_, 0, 0}).note(what);
    if (static_cast<std::int64_t>(found->size()) != bytes)
      return error(what, ": field 'external_data' has ", found->size(), " bytes, expected ", bytes);
    return *std::move(found);
  }

  static void fill_from(std::span<const std::byte> raw, Dtype dtype, const HostTensor& to) {
    if (!raw.empty()) std::memcpy(to.array().data, raw.data(), raw.size());
    if (dtype == Dtype::boolean)
      for (std::uint8_t& value : to.values<std::uint8_t>()) value = value != 0;
  }

  /// How many entries the field for a dtype has, and what the field is called.
  static std::pair<std::int64_t, std::string_view> typed_entries(const pb::TensorProto& from, Dtype dtype) {
    switch (dtype) {
      case Dtype::f32:
        return {from.float_data_size(), "float_data"};
      case Dtype::f64:
        return {from.double_data_size(), "double_data"};
      case Dtype::i64:
        return {from.int64_data_size(), "int64_data"};
      case Dtype::u32:
      case Dtype::u64:
        return {from.uint64_data_size(), "uint64_data"};
      default:
        return {from.int32_data_size(), "int32_data"};
    }
  }

  Result<void> check_count(const pb::TensorProto& from, const ElementType& type, std::int64_t count,
                           const std::string& what) const {
    if (from.has_raw_data()) {
      const std::int64_t expected = count * static_cast<std::int64_t>(ir::size_of(*type.dtype));
      if (static_cast<std::int64_t>(from.raw_data().size()) != expected)
        return error(what, ": field 'raw_data' has ", from.raw_data().size(), " bytes, expected ", expected);
      return {};
    }
    const auto [entries, field] = typed_entries(from, *type.dtype);
    if (entries != count)
      return error(what, ": field '", field, "' has ", entries, " entries, expected ", count);
    return {};
  }

  template <class To, class From>
  static void copy(const From& from, const HostTensor& to) {
    std::size_t i = 0;
    for (const auto value : from) to.values<To>()[i++] = static_cast<To>(value);
  }

  /// REQUIRES that check_count has passed.
  static void fill(const pb::TensorProto& from, Dtype dtype, const HostTensor& to) {
    if (from.has_raw_data())
      return fill_from(std::as_bytes(std::span(from.raw_data().data(), from.raw_data().size())), dtype, to);
    switch (dtype) {
      case Dtype::f32:
        return copy<float>(from.float_data(), to);
      case Dtype::f64:
        return copy<double>(from.double_data(), to);
      case Dtype::i64:
        return copy<std::int64_t>(from.int64_data(), to);
      case Dtype::u64:
        return copy<std::uint64_t>(from.uint64_data(), to);
      case Dtype::u32:
        return copy<std::uint32_t>(from.uint64_data(), to);
      case Dtype::i32:
        return copy<std::int32_t>(from.int32_data(), to);
      case Dtype::i16:
        return copy<std::int16_t>(from.int32_data(), to);
      case Dtype::i8:
        return copy<std::int8_t>(from.int32_data(), to);
      case Dtype::u8:
        return copy<std::uint8_t>(from.int32_data(), to);
      case Dtype::boolean:
        copy<std::uint8_t>(from.int32_data(), to);
        for (std::uint8_t& value : to.values<std::uint8_t>()) value = value != 0;
        return;
      default:
        return copy<std::uint16_t>(from.int32_data(), to);  // halves are kept as their bits
    }
  }

  // ---- types

  static void set_dtype(DeclaredType& out, int number) {
    const ElementType* type = element_type(number);
    out.dtype = type == nullptr ? std::nullopt : type->dtype;
    out.dtype_name = type == nullptr ? cat("element type ", number) : std::string(type->name);
  }

  Result<DeclaredType> type(const pb::TypeProto& from, const std::string& what) const {
    const pb::TypeProto* at = &from;
    DeclaredType out;
    if (at->has_optional_type()) {
      out.kind = DeclaredType::Kind::optional;
      at = &at->optional_type().elem_type();
    }
    if (at->has_sequence_type()) {
      if (out.kind == DeclaredType::Kind::unknown) out.kind = DeclaredType::Kind::sequence;
      at = &at->sequence_type().elem_type();
    }
    if (!at->has_tensor_type()) {
      if (out.kind == DeclaredType::Kind::unknown && from.value_case() != pb::TypeProto::VALUE_NOT_SET)
        out.kind = DeclaredType::Kind::other;
      return out;
    }
    if (out.kind == DeclaredType::Kind::unknown) out.kind = DeclaredType::Kind::tensor;
    set_dtype(out, at->tensor_type().elem_type());
    if (!at->tensor_type().has_shape()) return out;
    const auto& shape = at->tensor_type().shape();
    if (shape.dim_size() > max_dims)
      return error(what, ": field 'shape' has ", shape.dim_size(), " dimensions, at most ", max_dims,
                   " are allowed");
    out.shape.emplace();
    for (const auto& dim : shape.dim()) {
      if (dim.has_dim_value() && dim.dim_value() < 0)
        return error(what, ": field 'shape' has the dimension ", dim.dim_value(), ", expected 0 or more");
      if (dim.has_dim_value())
        out.shape->emplace_back(dim.dim_value());
      else if (dim.has_dim_param() && !dim.dim_param().empty())
        out.shape->emplace_back(TESSERA_TRY(name(dim.dim_param(), "dimension name")));
      else
        out.shape->emplace_back();
    }
    return out;
  }

  Result<ValueInfo> value_info(const pb::ValueInfoProto& from, std::string_view what) const {
    ValueInfo out{TESSERA_TRY(name(from.name(), what)), {}};
    out.type = TESSERA_TRY(type(from.type(), cat(what, " ", shown(from.name()))));
    return out;
  }

  // ---- nodes and graphs

  Result<Attribute> attribute(const pb::AttributeProto& from, const std::string& owner) {
    Attribute out;
    out.name = TESSERA_TRY(name(from.name(), "attribute name"));
    out.reference = TESSERA_TRY(name(from.ref_attr_name(), "attribute reference"));
    const std::string what = cat(owner, ", attribute ", shown(out.name));
    if (!out.reference.empty()) return out;
    switch (attribute_type(from)) {
      case pb::AttributeProto::FLOAT:
        out.kind = "a float", out.value = from.f();
        break;
      case pb::AttributeProto::INT:
        out.kind = "an integer", out.value = std::int64_t{from.i()};
        break;
      case pb::AttributeProto::STRING:
        out.kind = "a string", out.value = from.s();
        break;
      case pb::AttributeProto::TENSOR:
        out.kind = "a tensor", out.value = TESSERA_TRY(tensor(from.t(), what));
        break;
      case pb::AttributeProto::FLOATS:
        out.kind = "floats", out.value = std::vector<float>(from.floats().begin(), from.floats().end());
        break;
      case pb::AttributeProto::INTS:
        out.kind = "integers", out.value = std::vector<std::int64_t>(from.ints().begin(), from.ints().end());
        break;
      case pb::AttributeProto::STRINGS:
        out.kind = "strings",
        out.value = std::vector<std::string>(from.strings().begin(), from.strings().end());
        break;
      case pb::AttributeProto::GRAPH: {
        std::vector<Graph> one;
        one.push_back(TESSERA_TRY(graph(from.g(), what)));
        out.kind = "a graph", out.value = std::move(one);
        break;
      }
      case pb::AttributeProto::TYPE_PROTO:
        out.kind = "a type";
        break;
      case pb::AttributeProto::UNDEFINED:
        return error(what, " has no value and no type");
      default:
        out.kind = pb::AttributeProto::AttributeType_Name(from.type());
    }
    return out;
  }

  /// Files of the first years have no type field; then the field that is set tells.
  static pb::AttributeProto::AttributeType attribute_type(const pb::AttributeProto& from) {
    if (from.type() != pb::AttributeProto::UNDEFINED) return from.type();
    if (from.has_f()) return pb::AttributeProto::FLOAT;
    if (from.has_i()) return pb::AttributeProto::INT;
    if (from.has_s()) return pb::AttributeProto::STRING;
    if (from.has_t()) return pb::AttributeProto::TENSOR;
    if (from.has_g()) return pb::AttributeProto::GRAPH;
    if (from.floats_size() > 0) return pb::AttributeProto::FLOATS;
    if (from.ints_size() > 0) return pb::AttributeProto::INTS;
    if (from.strings_size() > 0) return pb::AttributeProto::STRINGS;
    return pb::AttributeProto::UNDEFINED;
  }

  Result<Node> node(const pb::NodeProto& from, std::size_t index, const std::string& owner) {
    if (++nodes_ > limits_.nodes)
      return Error(ErrorCode::limit, cat("the model has more than ", limits_.nodes, " nodes"), {file_, 0, 0});
    Node out;
    out.name = TESSERA_TRY(name(from.name(), "node name"));
    out.op = TESSERA_TRY(name(from.op_type(), "operator name"));
    out.domain = TESSERA_TRY(name(from.domain(), "domain name"));
    if (out.domain == "ai.onnx") out.domain.clear();
    for (const std::string& input : from.input())
      out.inputs.push_back(TESSERA_TRY(name(input, "input name")));
    for (const std::string& output : from.output())
      out.outputs.push_back(TESSERA_TRY(name(output, "output name")));
    if (out.op.empty()) return error(owner, ": field 'op_type' of node ", index, " is empty");
    for (const auto& one : from.attribute())
      out.attributes.push_back(TESSERA_TRY(attribute(one, describe(out))));
    return out;
  }

  Result<Graph> graph(const pb::GraphProto& from, const std::string& owner) {
    Graph out;
    out.name = TESSERA_TRY(name(from.name(), "graph name"));
    const std::string what = cat(owner, ", graph ", shown(out.name));
    if (from.sparse_initializer_size() > 0)
      return error(what, ": field 'sparse_initializer' is not supported");
    for (const auto& one : from.initializer())
      out.initializers.push_back(TESSERA_TRY(tensor(one, "initializer")));
    for (const auto& one : from.input()) out.inputs.push_back(TESSERA_TRY(value_info(one, "input")));
    for (const auto& one : from.output()) out.outputs.push_back(TESSERA_TRY(value_info(one, "output")));
    out.nodes.reserve(static_cast<std::size_t>(from.node_size()));
    for (const auto& one : from.node()) out.nodes.push_back(TESSERA_TRY(node(one, out.nodes.size(), what)));
    return out;
  }

  template <class Ids>
  Result<Opsets> opsets(const Ids& from) const {
    Opsets out;
    for (const auto& id : from) {
      std::string domain = TESSERA_TRY(name(id.domain(), "opset domain"));
      if (domain == "ai.onnx") domain.clear();
      if (find_opset(out, domain))
        return error("field 'opset_import' has the domain ", shown(domain), " twice");
      out.emplace_back(std::move(domain), id.version());
    }
    return out;
  }

  Result<LocalFunction> function(const pb::FunctionProto& from) {
    LocalFunction out;
    out.name = TESSERA_TRY(name(from.name(), "function name"));
    out.domain = TESSERA_TRY(name(from.domain(), "domain name"));
    if (out.domain == "ai.onnx") out.domain.clear();
    const std::string what = cat("function ", shown(out.name));
    for (const std::string& one : from.input()) out.inputs.push_back(TESSERA_TRY(name(one, "input name")));
    for (const std::string& one : from.output()) out.outputs.push_back(TESSERA_TRY(name(one, "output name")));
    for (const std::string& one : from.attribute())
      out.attributes.push_back(TESSERA_TRY(name(one, "attribute name")));
    for (const auto& one : from.node()) out.nodes.push_back(TESSERA_TRY(node(one, out.nodes.size(), what)));
    out.opsets = TESSERA_TRY(opsets(from.opset_import()));
    return out;
  }

  Result<Model> model(const pb::ModelProto& from) {
    Model out;
    out.file = file_;
    out.producer = TESSERA_TRY(name(from.producer_name(), "producer name"));
    out.ir_version = from.ir_version();
    if (!from.has_graph()) return error("field 'graph' is missing: the file holds no model");
    out.opsets = TESSERA_TRY(opsets(from.opset_import()));
    out.graph = TESSERA_TRY(graph(from.graph(), "model"));
    for (const auto& one : from.functions()) out.add_function(TESSERA_TRY(function(one)));
    return out;
  }

  // ---- test data

  Result<HostTensor> usable(const pb::TensorProto& from) {
    Tensor out = TESSERA_TRY(tensor(from, "tensor"));
    if (!out.unusable.empty())
      return Error(ErrorCode::unsupported, cat("tensor ", shown(out.name), ": ", out.unusable),
                   {file_, 0, 0});
    return std::move(out.value);
  }

  Result<DataValue> sequence(const pb::SequenceProto& from) {
    DataValue out{DataValue::Kind::sequence, {}};
    for (const auto& one : from.tensor_values()) out.tensors.push_back(TESSERA_TRY(usable(one)));
    return out;
  }

  Result<DataValue> optional(const pb::OptionalProto& from) {
    if (from.has_sequence_value()) return sequence(from.sequence_value());
    if (!from.has_tensor_value()) return DataValue{};
    auto tensor = TESSERA_TRY(usable(from.tensor_value()));
    return DataValue{DataValue::Kind::tensor, {std::move(tensor)}};
  }

 private:
  std::string file_;
  const Limits& limits_;
  ExternalFiles external_;
  std::shared_ptr<const Bytes> content_;
  std::int64_t nodes_ = 0;
};

/// An optional of no declared element may hold nothing at all: a file of no bytes.
template <class Message>
Result<void> decode_value(const Reader& reader, const Bytes& bytes, Message& message) {
  if (bytes.size() == 0) return {};
  return reader.decode(bytes.span(), message, "a value in the ONNX format");
}

/// Tensors stay in `content` where they can.
Result<Model> model_from(const Bytes& content, const std::string& file, std::optional<BaseFolder> folder,
                         const Limits& limits) {
  TESSERA_TRY(Reader(printable(file), limits).check_size(content.size()));
  const auto outline = outline_of(content.span());
  Reader reader(printable(file), limits, std::move(folder), outline ? content : Bytes());
  pb::ModelProto message;
  TESSERA_TRY(
      reader.decode(outline ? std::as_bytes(std::span(*outline)) : content.span(), message, "an ONNX model"));
  Model model = TESSERA_TRY(reader.model(message));
  TESSERA_TRY(validate(model, limits));
  return model;
}

}  // namespace

Result<Model> tessera::onnx::parse_model(std::span<const std::byte> bytes, const std::string& file,
                                         const Limits& limits) {
  return model_from(Bytes::copy(bytes), file, {}, limits);
}

Result<Model> tessera::onnx::read_model(const std::string& path, const Limits& limits) {
  const Bytes bytes = TESSERA_TRY(map_file(path));
  return model_from(bytes, path, TESSERA_TRY(BaseFolder::of(path)), limits);
}

Result<DataValue> tessera::onnx::read_value(const std::string& path, const DeclaredType& type,
                                            const Limits& limits) {
  const Bytes bytes = TESSERA_TRY(map_file(path));
  Reader reader(printable(path), limits);
  if (type.kind == DeclaredType::Kind::sequence) {
    pb::SequenceProto message;
    TESSERA_TRY(decode_value(reader, bytes, message));
    return reader.sequence(message);
  }
  if (type.kind == DeclaredType::Kind::optional) {
    pb::OptionalProto message;
    TESSERA_TRY(decode_value(reader, bytes, message));
    return reader.optional(message);
  }
  pb::TensorProto message;
  TESSERA_TRY(decode_value(reader, bytes, message));
  HostTensor tensor = TESSERA_TRY(reader.usable(message));
  // NumPy has no bfloat16, so that files written with it hold the bits as uint16.
  if (type.dtype == Dtype::bf16 && tensor.dtype() == Dtype::u16)
    tensor = HostTensor::of<std::uint16_t>(Dtype::bf16, tensor.shape(), tensor.values<std::uint16_t>());
  return DataValue{DataValue::Kind::tensor, {std::move(tensor)}};
}
