// Fourier transforms and windows, and random numbers.
#include <algorithm>
#include <cmath>

#include "tessera/onnx/mapping.h"
#include "tessera/onnx/value_target.h"

using namespace tessera;
using namespace tessera::onnx;

namespace {

constexpr double pi = 3.14159265358979323846;

// ---- transforms, as products with matrices of sines and cosines

struct Waves {
  Value cosines, sines;  ///< [n, bins]
};

constexpr std::int64_t max_length = 4096;

Result<void> check_length(NodeCall& node, std::int64_t length) {
  if (length < 1) return node.error("the length of a transform is ", length);
  if (length > max_length)
    return node.unsupported("a transform of length ", length, ", at most ", max_length, " is supported");
  return {};
}

/// REQUIRES check_length(n).
Waves waves(NodeCall& node, std::int64_t n, std::int64_t bins, Dtype dtype) {
  std::vector<double> cosines, sines;
  for (std::int64_t t = 0; t < n; ++t)
    for (std::int64_t k = 0; k < bins; ++k) {
      const double angle = 2 * pi * static_cast<double>(t * k % n) / static_cast<double>(n);
      cosines.push_back(std::cos(angle));
      sines.push_back(std::sin(angle));
    }
  return Waves{node.target.tensor(tensor_of(dtype, {n, bins}, std::span<const double>(cosines))),
               node.target.tensor(tensor_of(dtype, {n, bins}, std::span<const double>(sines)))};
}

struct Transform {
  std::int64_t length = 0;
  bool is_inverse = false, is_one_sided = false;
};

/// The transform of [..., n] (and its imaginary part, which may be absent) as [..., bins, 2].
Result<Value> transformed(NodeCall& node, Value real, Value imaginary, const Transform& of) {
  TESSERA_TRY(node.status());
  const std::int64_t bins = of.is_one_sided ? of.length / 2 + 1 : of.length;
  const auto [cosines, sines] = waves(node, of.length, bins, real.dtype());
  const Value down = of.is_inverse ? -sines : sines;  // e^(-i a) = cos a - i sin a
  Value re = matmul(real, cosines), im = -matmul(real, down);
  if (imaginary) {
    re = re + matmul(imaginary, down);
    im = im + matmul(imaginary, cosines);
  }
  if (of.is_inverse) {
    re = re / static_cast<double>(of.length);
    im = im / static_cast<double>(of.length);
  }
  const std::vector<std::int64_t> last{static_cast<std::int64_t>(real.rank())};
  return node.b.call(
      "concat",
      {node.b.call("unsqueeze", {re}, {{"axes", last}}), node.b.call("unsqueeze", {im}, {{"axes", last}})},
      {{"axis", -1}});
}

/// Part k of the last axis, which has 1 (real numbers) or 2 (complex ones) entries; empty if there is none.
Value part(NodeCall& node, Value x, std::int64_t k) {
  if (!x.shape()[x.rank() - 1].is_constant() || x.shape()[x.rank() - 1].value() <= k) return {};
  return node.b.call("squeeze", {slice(x, -1, k, k + 1)}, {{"axes", std::vector<std::int64_t>{-1}}});
}

/// The last axis cut or filled with zeros to a length.
Value fitted(NodeCall& node, Value x, std::int64_t length) {
  if (!x || x.shape()[x.rank() - 1] == Dim(length)) return x;
  Shape after(x.rank(), Dim(0));
  after[x.rank() - 1] = Dim(length) - x.shape()[x.rank() - 1];
  return node.b.call("pad", {x, node.b.constant(0, x.dtype())},
                     {{"before", Shape(x.rank(), Dim(0))}, {"after", after}});
}

Result<Items> map_dft(NodeCall& node) {
  const Value x = node.in(0);
  TESSERA_TRY(node.status());
  if (x.rank() < 2) return node.error("input 0 is ", x.type(), ", expected rank 2 or more");
  const std::int64_t asked = node.opset >= 20 && node.has(2)
                                 ? TESSERA_TRY(node.integer_in(2))
                                 : node.integer("axis", node.opset >= 20 ? -2 : 1);
  const std::int64_t axis = TESSERA_TRY(node.axis(asked, x.rank())),
                     last = static_cast<std::int64_t>(x.rank()) - 2;
  if (axis > last) return node.error("axis ", asked, " is that of the complex parts");
  const auto sizes = TESSERA_TRY(node.numbers_of_shape(x));
  const Transform of{node.has(1) ? TESSERA_TRY(node.integer_in(1)) : sizes[static_cast<std::size_t>(axis)],
                     node.flag("inverse", false), node.flag("onesided", false)};
  TESSERA_TRY(check_length(node, of.length));
  std::vector<std::int64_t> swap = axes_from(0, x.rank());
  std::swap(swap[static_cast<std::size_t>(axis)], swap[static_cast<std::size_t>(last)]);
  const Value moved = transpose(x, swap);
  const Value imaginary = part(node, moved, 1);
  const Value y = TESSERA_TRY(transformed(node, fitted(node, part(node, moved, 0), of.length),
                                          fitted(node, imaginary, of.length), of));
  return Items{transpose(y, swap)};
}

Result<std::int64_t> window_length(NodeCall& node) {
  const auto sizes = TESSERA_TRY(node.numbers_of_shape(node.in(2)));
  if (sizes.size() != 1) return node.error("input 2, the window, has ", sizes.size(), " axes, expected 1");
  return sizes[0];
}

Result<Items> map_stft(NodeCall& node) {
  const Value signal = node.in(0);
  const std::int64_t step = TESSERA_TRY(node.integer_in(1));
  const auto sizes = TESSERA_TRY(node.numbers_of_shape(signal));
  if (sizes.size() != 3) return node.error("input 0 is ", signal.type(), ", expected rank 3");
  std::int64_t length = sizes[1];
  if (node.has(3))
    length = TESSERA_TRY(node.integer_in(3));
  else if (node.has(2))
    length = TESSERA_TRY(window_length(node));
  if (step < 1 || length < 1 || length > sizes[1])
    return node.error("frames of ", length, " every ", step, " of ", sizes[1]);
  std::vector<std::int64_t> at;
  const std::int64_t frames = (sizes[1] - length) / step + 1;
  TESSERA_TRY(check_length(node, length));
  if (frames > node.bodies.limits().elements / 8 / length)
    return Error(ErrorCode::limit, cat("there are ", frames, " frames of ", length));
  for (std::int64_t f = 0; f < frames; ++f)
    for (std::int64_t t = 0; t < length; ++t) at.push_back(f * step + t);
  const auto framed = [&](Value x) {
    if (!x) return x;
    const Value taken = reshape(node.b.call("gather", {x, node.vector_of(at)}, {{"axis", 1}}),
                                Shape{Dim(sizes[0]), Dim(frames), Dim(length)});
    return node.has(2) ? taken * node.in(2) : taken;
  };
  const Transform of{length, false, node.flag("onesided", true)};
  return Items{
      TESSERA_TRY(transformed(node, framed(part(node, signal, 0)), framed(part(node, signal, 1)), of))};
}

// ---- windows

/// a0 - a1 cos(2 pi i / n) + a2 cos(4 pi i / n)
Result<Items> window(NodeCall& node, double a0, double a1, double a2) {
  const std::int64_t size = TESSERA_TRY(node.integer_in(0));
  const Dtype dtype = TESSERA_TRY(node.dtype("output_datatype", Dtype::f32));
  if (size < 0 || size > node.bodies.limits().elements / 4) return node.error("input 0, the size, is ", size);
  const double n = static_cast<double>(node.flag("periodic", true) ? size : size - 1);
  std::vector<double> out;
  for (std::int64_t i = 0; i < size; ++i) {
    const double angle = n == 0 ? 0 : 2 * pi * static_cast<double>(i) / n;
    out.push_back(a0 - a1 * std::cos(angle) + a2 * std::cos(2 * angle));
  }
  return Items{node.target.tensor(tensor_of(dtype, {size}, std::span<const double>(out)))};
}
Result<Items> map_hann(NodeCall& node) { return window(node, 0.5, 0.5, 0); }
Result<Items> map_hamming(NodeCall& node) { return window(node, 25.0 / 46, 21.0 / 46, 0); }
Result<Items> map_blackman(NodeCall& node) { return window(node, 0.42, 0.5, 0.08); }

// ---- mel filters

double to_mel(double hertz) { return 2595 * std::log10(1 + hertz / 700); }
double from_mel(double mel) { return 700 * (std::pow(10, mel / 2595) - 1); }

/// Writes one triangle between three bins into its column.
void add_triangle(std::vector<double>& out, std::size_t columns, std::size_t column, std::int64_t low,
                  std::int64_t centre, std::int64_t high) {
  const auto cell = [&](std::int64_t bin) -> double& {
    return out[static_cast<std::size_t>(bin) * columns + column];
  };
  const auto rise = static_cast<double>(centre - low), fall = static_cast<double>(high - centre);
  if (centre == low) cell(centre) = 1;
  for (std::int64_t j = low; j <= centre && centre != low; ++j) cell(j) = static_cast<double>(j - low) / rise;
  for (std::int64_t j = centre; j < high; ++j) cell(j) = static_cast<double>(high - j) / fall;
}

Result<Items> map_mel_weights(NodeCall& node) {
  const std::int64_t mels = TESSERA_TRY(node.integer_in(0)), length = TESSERA_TRY(node.integer_in(1));
  const std::int64_t rate = TESSERA_TRY(node.integer_in(2));
  const double low = to_mel(TESSERA_TRY(node.number_in(3))), high = to_mel(TESSERA_TRY(node.number_in(4)));
  const Dtype dtype = TESSERA_TRY(node.dtype("output_datatype", Dtype::f32));
  if (mels < 1 || length < 1 || rate < 1 || mels > 1 << 16 || length > 1 << 20)
    return node.error("there are ", mels, " bins of ", length, " at a rate of ", rate);
  const std::int64_t bins = length / 2 + 1;
  if (bins * mels > node.bodies.limits().elements) return Error(ErrorCode::limit, "the matrix is too large");
  std::vector<std::int64_t> edges;
  for (std::int64_t i = 0; i < mels + 2; ++i) {
    const double mel = static_cast<double>(i) * (high - low) / static_cast<double>(mels + 2) + low;
    const double bin =
        std::floor(static_cast<double>(length + 1) * from_mel(mel) / static_cast<double>(rate));
    if (!(bin >= 0 && bin < static_cast<double>(bins)))
      return node.error("a frequency is outside the spectrum");
    edges.push_back(static_cast<std::int64_t>(bin));
  }
  std::vector<double> out(static_cast<std::size_t>(bins * mels), 0);
  for (std::size_t i = 0; i < static_cast<std::size_t>(mels); ++i)
    add_triangle(out, static_cast<std::size_t>(mels), i, edges[i], edges[i + 1], edges[i + 2]);
  return Items{node.target.tensor(tensor_of(dtype, {bins, mels}, std::span<const double>(out)))};
}

// ---- random numbers: the seed of the node, else one per node from its first output's name

Value random(NodeCall& node, std::string_view op, double a, double b, const Shape& shape, Dtype dtype) {
  double seed = node.number("seed", 0);
  if (node.attribute("seed") == nullptr)
    for (const char c : node.node.outputs.empty() ? std::string() : node.node.outputs[0])
      seed = std::fmod(seed * 31 + static_cast<unsigned char>(c), 1e9);
  const Dtype f64 = Dtype::f64;
  return node.b.call(op,
                     {node.b.constant(a, f64), node.b.constant(b, f64), node.b.constant(seed, Dtype::i64)},
                     {{"shape", shape}, {"dtype", dtype}});
}

template <bool is_like, bool is_normal>
Result<Items> map_random(NodeCall& node) {
  Shape shape;
  Dtype otherwise = Dtype::f32;
  if constexpr (is_like) {
    const Value like = node.in(0);
    TESSERA_TRY(node.status());
    shape = like.shape();
    otherwise = ir::is_float(like.dtype()) ? like.dtype() : Dtype::f32;
  } else {
    for (const std::int64_t size : node.integers("shape")) {
      if (size < 0) return node.error("attribute 'shape' has the size ", size);
      shape.emplace_back(size);
    }
  }
  const Dtype dtype = TESSERA_TRY(node.dtype("dtype", otherwise));
  if (is_normal)
    return Items{
        random(node, "random_normal", node.number("mean", 0), node.number("scale", 1), shape, dtype)};
  return Items{random(node, "random_uniform", node.number("low", 0), node.number("high", 1), shape, dtype)};
}

Result<Items> map_bernoulli(NodeCall& node) {
  const Value p = node.in(0);
  TESSERA_TRY(node.status());
  const Dtype dtype = TESSERA_TRY(node.dtype("dtype", p.dtype()));
  return Items{
      cast(node.b.call("lt", {random(node, "random_uniform", 0, 1, p.shape(), p.dtype()), p}), dtype)};
}

constexpr Mapping signal_table[] = {
    {"Bernoulli", map_bernoulli},
    {"BlackmanWindow", map_blackman},
    {"DFT", map_dft},
    {"HammingWindow", map_hamming},
    {"HannWindow", map_hann},
    {"MelWeightMatrix", map_mel_weights},
    {"RandomNormal", map_random<false, true>},
    {"RandomNormalLike", map_random<true, true>},
    {"RandomUniform", map_random<false, false>},
    {"RandomUniformLike", map_random<true, false>},
    {"STFT", map_stft},
};

}  // namespace

std::span<const Mapping> tessera::onnx::signal_mappings() { return signal_table; }
