// Tensors as text, shortened in the middle of long axes.
#include <algorithm>
#include <cmath>

#include "tessera/base/text.h"
#include "tessera/tensor/tensor.h"

using namespace tessera;

namespace {

constexpr std::int64_t shown_at_each_end = 3;
constexpr std::int64_t shown_in_full = 1000;  // elements

class TensorText {
 public:
  TensorText(const Tensor& tensor, Here here)
      : shape_(tensor.shape(here)),
        dtype_(tensor.dtype(here)),
        values_(tensor.to_vector<double>(here)),
        integers_(ir::is_float(dtype_) ? std::vector<std::int64_t>() : tensor.to_vector<std::int64_t>(here)),
        shorten_(static_cast<std::int64_t>(values_.size()) > shown_in_full) {}

  std::string text() {
    if (values_.empty())
      out_ = "[]";
    else
      axis(0, 0);
    return out_ + cat(" ", dtype_, "[", join(shape_, ", "), "]");
  }

 private:
  void axis(std::size_t depth, std::int64_t offset) {
    if (depth == shape_.size()) return element(offset);
    std::int64_t stride = 1;
    for (std::size_t i = depth + 1; i < shape_.size(); ++i) stride *= shape_[i];
    out_ += '[';
    for (std::int64_t i = 0; i < shape_[depth]; ++i) {
      if (i > 0) out_ += depth + 1 == shape_.size() ? std::string(", ") : ",\n" + std::string(depth + 1, ' ');
      if (shorten_ && shape_[depth] > 2 * shown_at_each_end && i == shown_at_each_end) {
        out_ += "…";
        i = shape_[depth] - shown_at_each_end - 1;
        continue;
      }
      axis(depth + 1, offset + i * stride);
    }
    out_ += ']';
  }

  void element(std::int64_t offset) {
    const auto at = static_cast<std::size_t>(offset);
    if (dtype_ == Dtype::boolean)
      append_text(out_, integers_[at] != 0);
    else if (dtype_ == Dtype::u64)
      append_text(out_, static_cast<std::uint64_t>(integers_[at]));
    else if (!ir::is_float(dtype_))
      append_text(out_, integers_[at]);
    else if (std::isnan(values_[at]))
      out_ += "nan";
    else if (dtype_ == Dtype::f64)
      append_text(out_, values_[at]);
    else
      append_text(out_, static_cast<float>(values_[at]));
  }

  Shape shape_;
  Dtype dtype_;
  std::vector<double> values_;
  std::vector<std::int64_t> integers_;
  bool shorten_;
  std::string out_;
};

}  // namespace

std::string Tensor::to_text(Here here) const { return TensorText(*this, here).text(); }
