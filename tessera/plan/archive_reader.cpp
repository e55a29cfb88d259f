#include "tessera/plan/archive_reader.h"

#include <algorithm>

#include "tessera/base/checked.h"
#include "tessera/ir/seal.h"
#include "tessera/op/catalogue.h"

using namespace tessera;
using namespace tessera::plan::archive;

namespace {

constexpr std::string_view section_names[] = {"files", "nodes", "kernels", "plan", "data"};
/// As deep as a text may nest.
constexpr std::uint32_t most_depth = 400;

bool are_booleans(std::span<const std::byte> bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b <= std::byte{1}; });
}

}  // namespace

Reader::Reader(std::span<const std::string_view> sections, Bytes data) : data_(std::move(data)) {
  std::copy(sections.begin(), sections.end(), sections_);
  read_files();
  read_nodes();
  read_kernels();
  open(Section::plan);
}

std::optional<Error> Reader::finish() {
  if (!error_ && !is_at_end()) fail("something stands behind the plan");
  return std::move(error_);
}

void Reader::open(Section section) {
  section_ = section;
  bytes_ = sections_[static_cast<std::size_t>(section)];
  at_ = 0;
}

void Reader::read_files() {
  open(Section::files);
  while (!error_ && !is_at_end()) {
    std::string name = text();
    std::vector<std::string> labels;
    read(labels);
    files_.push_back(ir::SourceFile::create(std::move(name), std::move(labels)));
  }
}

void Reader::read_nodes() {
  open(Section::nodes);
  in_nodes_ = true;
  while (!error_ && !is_at_end()) {
    const auto kind = static_cast<ir::NodeKind>(number_below(ir::node_kind_count, "a kind of node"));
    const ir::Span at = span();
    if (!error_) add_node(kind, at);
  }
  in_nodes_ = false;
}

void Reader::read_kernels() {
  open(Section::kernels);
  while (!error_ && !is_at_end()) {
    auto kernel = std::make_shared<kernel::Kernel>();
    read(*kernel);
    kernels_.push_back(std::move(kernel));
  }
}

void Reader::fail(std::string message) {
  if (error_) return;
  error_ =
      Error(ErrorCode::parse, cat("the file is damaged: ", message, " (section '",
                                  section_names[static_cast<std::size_t>(section_)], "', byte ", at_, ")"));
  at_ = bytes_.size();
}

std::uint64_t Reader::number() {
  std::uint64_t out = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    if (is_at_end()) return fail("it ends within a number"), 0;
    const auto byte = static_cast<unsigned char>(bytes_[at_++]);
    out |= std::uint64_t{byte & 0x7fU} << shift;
    if (byte < 0x80) return out;
  }
  return fail("a number is too long"), 0;
}

std::uint64_t Reader::number_below(std::uint64_t limit, std::string_view what) {
  const std::uint64_t out = number();
  if (out < limit) return out;
  return fail(cat(what, " is ", out, ", which is not below ", limit)), 0;
}

/// Every element takes a byte at least.
std::size_t Reader::length() { return number_below(bytes_.size() - at_ + 1, "a length"); }

std::string Reader::text() {
  const std::size_t size = length();
  if (error_ || size > bytes_.size() - at_) return fail("it ends within a text"), "";
  at_ += size;
  return std::string(bytes_.substr(at_ - size, size));
}

Bytes Reader::blob() {
  const std::uint64_t begin = number(), size = number();
  if (error_) return {};
  if (begin > data_.size() || size > data_.size() - begin || begin % data_alignment != 0)
    return fail(cat("elements at ", begin, " of the data, which has ", data_.size(), " bytes")), Bytes();
  auto owner = std::make_shared<const Bytes>(data_);
  return {owner->span().subspan(begin, size), owner};
}

op::HostTensor Reader::tensor() {
  ir::Dtype dtype{};
  op::Extents shape;
  read(dtype);
  read(shape);
  const Bytes elements = blob();
  if (error_) return {};
  const bool is_shape = shape.size() <= op::max_rank &&
                        std::all_of(shape.begin(), shape.end(), [](std::int64_t size) { return size >= 0; });
  const auto count = is_shape ? checked_product(shape) : std::nullopt;
  const auto bytes =
      count ? checked_mul<std::int64_t>(*count, static_cast<std::int64_t>(ir::size_of(dtype))) : std::nullopt;
  if (!bytes || static_cast<std::size_t>(*bytes) != elements.size())
    return fail(cat("a constant ", dtype, "[", join(shape, ", "), "] has ", elements.size(), " bytes")),
           op::HostTensor();
  if (dtype == ir::Dtype::boolean && !are_booleans(elements.span()))
    return fail("a boolean is neither 0 nor 1"), op::HostTensor();
  return op::HostTensor::wrap(dtype, std::move(shape), elements.data(),
                              std::make_shared<const Bytes>(elements));
}

CardPointer Reader::card() {
  const std::string name = text();
  if (error_ || name.empty()) return nullptr;
  const op::Card* found = op::find_card(name);
  if (found != nullptr && op::is_in_catalogue(*found)) return found;
  return fail(cat("there is no op '", printable(name), "'")), nullptr;
}

ir::Dim Reader::dim() {
  bool is_constant = false;
  read(is_constant);
  if (is_constant) {
    std::int64_t value = 0;
    read(value);
    return value;
  }
  const ir::Node* found = node(false);
  if (found == nullptr) return {};
  if (!is_kind<ir::Expr>(found->kind()) ||
      ir::scalar_dtype(static_cast<const ir::Expr&>(*found)) != ir::Dtype::i64)
    return fail(cat("a size is a ", ir::to_string(found->kind()))), ir::Dim();
  return ir::Dim(ir::ExprRef(static_cast<const ir::Expr*>(found)));
}

ir::Span Reader::span() {
  const std::uint64_t file = number_below(files_.size() + 1, "a source file");
  ir::Span out;
  read(out.line);
  read(out.column);
  if (!error_ && file != 0) out.file = files_[file - 1];
  return out;
}

const ir::Node* Reader::node(bool may_be_absent) {
  const std::uint64_t index = number_below(nodes_.size() + 1, "a node");
  if (error_) return nullptr;
  if (index == 0) {
    if (!may_be_absent) fail("a node is missing");
    return nullptr;
  }
  depth_ = std::max(depth_, depths_[index - 1]);
  return nodes_[index - 1].get();
}

template <class N>
void Reader::check_node(const N& node) {
  if constexpr (std::is_same_v<N, ir::ScalarOp>) {
    if (node.operands.size() != ir::info(node.opcode).arity)
      return fail(cat("'", ir::to_string(node.opcode), "' has ", node.operands.size(), " operands"));
    for (const ir::ExprRef& operand : node.operands)
      if (!ir::scalar_dtype(*operand)) return fail("an operand of a scalar is none");
  } else if constexpr (std::is_same_v<N, ir::IntConst>) {
    if (!ir::is_integer(node.dtype)) fail("an integer has another dtype");
  } else if constexpr (std::is_same_v<N, ir::FloatConst>) {
    if (!ir::is_float(node.dtype)) fail("a float has another dtype");
  } else if constexpr (std::is_same_v<N, ir::Dense>) {
    if (node.type->dtype == ir::Dtype::boolean && !are_booleans(node.data.span()))
      fail("a boolean is neither 0 nor 1");
  } else if constexpr (std::is_same_v<N, ir::TensorType>) {
    if (node.shape.size() > op::max_rank) fail("a tensor has too many axes");
  }
}

template <class N>
void Reader::add_node_of(ir::Span span) {
  auto draft = std::make_unique<N>(std::move(span));
  depth_ = 0;
  for_each_field(*draft, [&](const auto&, auto& member) { read(member); });
  if (error_) return;
  check_node(*draft);
  if constexpr (std::is_same_v<N, ir::Var>) {
    nodes_.push_back(ir::variable(std::move(draft->name), std::move(draft->type), draft->span()));
  } else {
    nodes_.push_back(ir::seal(std::move(draft)));
  }
  depths_.push_back(depth_ + (std::is_same_v<N, ir::Function> || std::is_same_v<N, ir::TupleType> ? 1 : 0));
  if (depths_.back() > most_depth) fail(cat("functions nest deeper than ", most_depth, " levels"));
}

void Reader::add_node(ir::NodeKind kind, ir::Span span) {
  [&]<class... N>(const std::tuple<N...>*) {
    ((kind == N::node_kind ? add_node_of<N>(span) : void()), ...);
  }(static_cast<const ir::AllNodes*>(nullptr));
}

template tessera::plan::Plan Reader::take<tessera::plan::Plan>();
