// Built where oneDNN's header is missing or oneDNN is switched off.
#include "tessera/runtime/cpu/onednn.h"

using namespace tessera;
using namespace tessera::runtime::cpu;

struct PackedWeights::State {};
struct Primitive::State {
  std::string implementation;
};

namespace {
Error missing() { return Error(ErrorCode::unsupported, "this build has no oneDNN"); }
}  // namespace

PackedWeights::PackedWeights(std::unique_ptr<State> state) : state_(std::move(state)) {}
PackedWeights::PackedWeights(PackedWeights&&) noexcept = default;
PackedWeights& PackedWeights::operator=(PackedWeights&&) noexcept = default;
PackedWeights::~PackedWeights() = default;
std::size_t PackedWeights::byte_size() const { return 0; }
bool PackedWeights::has_panels() const { return false; }
Result<PackedWeights> PackedWeights::panel(std::int64_t, std::int64_t) const { return missing(); }

Primitive::Primitive(std::unique_ptr<State> state) : state_(std::move(state)) {}
Primitive::~Primitive() = default;
const std::string& Primitive::implementation() const { return state_->implementation; }
std::size_t Primitive::scratch_bytes() const { return 0; }
Result<PackedWeights> Primitive::pack(const float*, const OperandForm&) const { return missing(); }
bool Primitive::packs_panels() const { return false; }
bool Primitive::shares_weights_with(const Primitive&) const { return false; }
bool Primitive::accepts(const PackedWeights&) const { return false; }
Result<void> Primitive::run(const PrimitiveOperands&, std::byte*) const { return missing(); }

Result<const OneDnn*> OneDnn::open() { return missing(); }
Result<std::unique_ptr<const Primitive>> OneDnn::matmul(const MatmulRequest&) const { return missing(); }
bool OneDnn::multiplies_bytes_exactly() { return false; }
void OneDnn::make_byte_code() const {}
Result<void> OneDnn::multiply(const ByteProduct&) const { return missing(); }
Result<std::unique_ptr<const Primitive>> OneDnn::convolution(const ConvolutionRequest&) const {
  return missing();
}
