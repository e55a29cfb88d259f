// Builds a description in C++. Every call keeps the caller's line for messages.
//
//   Builder b;
//   b.external("x", Dtype::f32, {1024}).external("y", Dtype::f32, {1024});
//   b.kernel("scale", "scale_kernel",
//            {read("x", {.buffer = "x"}), write("y", {.buffer = "y"}), scalar("by", 2.0)});
//   const Validation v = validate(b.finish(), &b.kernels());
#pragma once

#include <memory>

#include "tessera/describe/description.h"
#include "tessera/describe/kernels.h"

namespace tessera::description {

/// The line a call stands on, taken where a default argument is made.
struct Here {
  Here(const char* in_file = __builtin_FILE(), int at_line = __builtin_LINE())
      : file(in_file), line(at_line) {}
  const char* file;
  int line;
};

struct PinOptions {
  std::string buffer = {};
  std::optional<Dtype> dtype = {};
  std::string shape = {};
  bool required = true;
};

[[nodiscard]] Parameter read(std::string name, PinOptions options = {});
[[nodiscard]] Parameter write(std::string name, PinOptions options = {});
[[nodiscard]] Parameter read_write(std::string name, PinOptions options = {});
[[nodiscard]] Parameter append(std::string name, PinOptions options = {});
[[nodiscard]] Parameter scalar(std::string name, double value, std::optional<Dtype> dtype = {});
[[nodiscard]] Parameter integer(std::string name, std::int64_t value, std::optional<Dtype> dtype = {});
/// Of a captured node: a number that the library reads from memory at every launch.
[[nodiscard]] Parameter device_scalar(std::string name, double value);

class Builder {
 public:
  explicit Builder(std::string name = {}) { description_.name = std::move(name); }

  Builder& block(std::string id, std::string parent = {}, Here here = {});
  /// The block that nodes and regions added from now on belong to.
  Builder& in_block(std::string id);
  /// The region, and the branch of it, that nodes and regions added from now on stand in.
  Builder& within(std::string region = {}, std::int64_t branch = 0);

  Builder& external(std::string id, Dtype dtype, Extents shape, Here here = {});
  Builder& graph(std::string id, Dtype dtype, Extents shape, Here here = {});
  /// A region buffer.
  Builder& temporary(std::string id, Dtype dtype, Extents shape, std::string region = {}, Here here = {});

  Builder& op(std::string id, std::string op, std::vector<Parameter> parameters,
              ir::Attributes attributes = {}, Here here = {});
  Builder& kernel(std::string id, std::string kernel, std::vector<Parameter> parameters, Here here = {});
  /// A kernel node with a function of its own.
  Builder& kernel(std::string id, KernelFunction function, std::vector<Parameter> parameters, Here here = {});
  Builder& captured(std::string id, std::string capture, std::vector<Parameter> parameters, Here here = {});
  /// A captured node with a function of its own.
  Builder& captured(std::string id, CaptureFunction function, std::vector<Parameter> parameters,
                    Here here = {});

  Builder& edge(PinName from, PinName to, Here here = {});
  Builder& dependency(std::string before, std::string after, Here here = {});

  Builder& if_(std::string id, std::string condition, Here here = {});
  Builder& if_else(std::string id, std::string condition, Here here = {});
  Builder& switch_(std::string id, std::string condition, std::int64_t branches, Here here = {});
  Builder& while_(std::string id, std::string condition, std::int64_t limit = 1'000'000, Here here = {});
  Builder& for_(std::string id, std::int64_t count, std::string index = {}, Here here = {});
  /// A `for` whose count is the first element of a buffer when it begins.
  Builder& for_count_in(std::string id, std::string count, std::string index = {},
                        std::int64_t limit = 1'000'000, Here here = {});

  /// The kernels, with those that nodes brought along.
  [[nodiscard]] KernelTable& kernels() { return kernels_; }
  [[nodiscard]] Description& description() { return description_; }
  [[nodiscard]] std::shared_ptr<const Description> finish() const {
    return std::make_shared<const Description>(description_);
  }

 private:
  Builder& buffer(std::string id, Lifetime lifetime, Dtype dtype, Extents shape, std::string region,
                  Here here);
  Builder& node(Node node, std::vector<Parameter> parameters, Here here);
  Builder& region(Region region, Here here);
  [[nodiscard]] Place place(Here here);

  Description description_;
  KernelTable kernels_;
  std::string block_;
  Within within_;
};

}  // namespace tessera::description
