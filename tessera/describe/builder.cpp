#include "tessera/describe/builder.h"

#include "tessera/base/text.h"

using namespace tessera;
using namespace tessera::description;

namespace {

Parameter pin(std::string name, Access access, PinOptions options) {
  return {.name = std::move(name),
          .access = access,
          .dtype = options.dtype,
          .shape = std::move(options.shape),
          .buffer = std::move(options.buffer),
          .required = options.required};
}

/// The name that a node's own function has among the kernels.
std::string own_name(const std::string& id) { return cat("function of ", id); }

}  // namespace

Parameter tessera::description::read(std::string name, PinOptions options) {
  return pin(std::move(name), Access::read, std::move(options));
}
Parameter tessera::description::write(std::string name, PinOptions options) {
  return pin(std::move(name), Access::write, std::move(options));
}
Parameter tessera::description::read_write(std::string name, PinOptions options) {
  return pin(std::move(name), Access::read_write, std::move(options));
}
Parameter tessera::description::append(std::string name, PinOptions options) {
  return pin(std::move(name), Access::append, std::move(options));
}
Parameter tessera::description::scalar(std::string name, double value, std::optional<Dtype> dtype) {
  return {.name = std::move(name), .scalar = value, .dtype = dtype};
}
Parameter tessera::description::integer(std::string name, std::int64_t value, std::optional<Dtype> dtype) {
  return {.name = std::move(name), .scalar = value, .dtype = dtype};
}
Parameter tessera::description::device_scalar(std::string name, double value) {
  return {.name = std::move(name), .scalar = value, .in_device_memory = true};
}

Place Builder::place(Here here) {
  auto& files = description_.files;
  if (files.empty() || files.back() != here.file) files.emplace_back(here.file);
  return {static_cast<std::uint32_t>(files.size() - 1), static_cast<std::uint32_t>(here.line), 0};
}

Builder& Builder::block(std::string id, std::string parent, Here here) {
  description_.blocks.push_back({std::move(id), std::move(parent), place(here)});
  return *this;
}
Builder& Builder::in_block(std::string id) {
  block_ = std::move(id);
  return *this;
}
Builder& Builder::within(std::string region, std::int64_t branch) {
  within_ = {std::move(region), branch};
  return *this;
}

Builder& Builder::buffer(std::string id, Lifetime lifetime, Dtype dtype, Extents shape, std::string region,
                         Here here) {
  description_.buffers.push_back(
      {std::move(id), lifetime, dtype, std::move(shape), std::move(region), place(here)});
  return *this;
}
Builder& Builder::external(std::string id, Dtype dtype, Extents shape, Here here) {
  return buffer(std::move(id), Lifetime::external, dtype, std::move(shape), {}, here);
}
Builder& Builder::graph(std::string id, Dtype dtype, Extents shape, Here here) {
  return buffer(std::move(id), Lifetime::graph, dtype, std::move(shape), {}, here);
}
Builder& Builder::temporary(std::string id, Dtype dtype, Extents shape, std::string region, Here here) {
  return buffer(std::move(id), Lifetime::region, dtype, std::move(shape), std::move(region), here);
}

Builder& Builder::node(Node node, std::vector<Parameter> parameters, Here here) {
  node.block = block_;
  node.within = within_;
  node.parameters = std::move(parameters);
  node.at = place(here);
  for (Parameter& parameter : node.parameters) parameter.at = parameter.shape_at = node.at;
  description_.nodes.push_back(std::move(node));
  return *this;
}
Builder& Builder::op(std::string id, std::string op, std::vector<Parameter> parameters,
                     ir::Attributes attributes, Here here) {
  return node(
      {.id = std::move(id), .kind = NodeKind::op, .call = std::move(op), .attributes = std::move(attributes)},
      std::move(parameters), here);
}
Builder& Builder::kernel(std::string id, std::string kernel, std::vector<Parameter> parameters, Here here) {
  return node({.id = std::move(id), .kind = NodeKind::kernel, .call = std::move(kernel)},
              std::move(parameters), here);
}
Builder& Builder::kernel(std::string id, KernelFunction function, std::vector<Parameter> parameters,
                         Here here) {
  std::string name = own_name(id);
  kernels_.add(name, std::move(function));
  kernel(std::move(id), std::move(name), std::move(parameters), here);
  description_.nodes.back().is_anonymous = true;
  return *this;
}
Builder& Builder::captured(std::string id, std::string capture, std::vector<Parameter> parameters,
                           Here here) {
  return node({.id = std::move(id), .kind = NodeKind::captured, .call = std::move(capture)},
              std::move(parameters), here);
}
Builder& Builder::captured(std::string id, CaptureFunction function, std::vector<Parameter> parameters,
                           Here here) {
  std::string name = own_name(id);
  kernels_.add_capture(name, std::move(function));
  captured(std::move(id), std::move(name), std::move(parameters), here);
  description_.nodes.back().is_anonymous = true;
  return *this;
}

Builder& Builder::edge(PinName from, PinName to, Here here) {
  description_.edges.push_back({std::move(from), std::move(to), place(here)});
  return *this;
}
Builder& Builder::dependency(std::string before, std::string after, Here here) {
  description_.dependencies.push_back({std::move(before), std::move(after), place(here)});
  return *this;
}

Builder& Builder::region(Region region, Here here) {
  region.block = block_;
  region.within = within_;
  region.at = place(here);
  description_.regions.push_back(std::move(region));
  return *this;
}
Builder& Builder::if_(std::string id, std::string condition, Here here) {
  return region({.id = std::move(id), .kind = RegionKind::if_, .condition = std::move(condition)}, here);
}
Builder& Builder::if_else(std::string id, std::string condition, Here here) {
  return region(
      {.id = std::move(id), .kind = RegionKind::if_, .branches = 2, .condition = std::move(condition)}, here);
}
Builder& Builder::switch_(std::string id, std::string condition, std::int64_t branches, Here here) {
  return region({.id = std::move(id),
                 .kind = RegionKind::switch_,
                 .branches = branches,
                 .condition = std::move(condition)},
                here);
}
Builder& Builder::while_(std::string id, std::string condition, std::int64_t limit, Here here) {
  return region(
      {.id = std::move(id), .kind = RegionKind::while_, .condition = std::move(condition), .limit = limit},
      here);
}
Builder& Builder::for_(std::string id, std::int64_t count, std::string index, Here here) {
  return region({.id = std::move(id), .kind = RegionKind::for_, .count = count, .index = std::move(index)},
                here);
}
Builder& Builder::for_count_in(std::string id, std::string count, std::string index, std::int64_t limit,
                               Here here) {
  return region({.id = std::move(id),
                 .kind = RegionKind::for_,
                 .condition = std::move(count),
                 .index = std::move(index),
                 .limit = limit},
                here);
}
