#include "tests/catalogue/device_cases.h"

#include <map>
#include <set>

#include "tessera/base/text.h"
#include "tessera/op/catalogue.h"

using namespace tessera;
using namespace tessera::fixture;
using ir::Dtype;

namespace {

/// Nothing for sizes that do not make a call.
void add(std::vector<DeviceCase>& to, const Sample& sample, Dtype dtype, const Sample::Sizes& sizes) {
  if (!op::infer(*sample.card, sample.types(dtype, &sizes), sample.attributes_with(&sizes))) return;
  std::string text = cat(sample.text, " in ", to_string(dtype));
  for (const auto& [name, size] : sizes) text += cat(", ", name, " = ", size);
  to.push_back({&sample, dtype, sizes, std::move(text)});
}

/// One of each kind.
std::vector<Dtype> few_dtypes(const op::Card& card) {
  std::vector<Dtype> out;
  for (const Dtype dtype : dtypes_of(card))
    if (dtype == Dtype::f32 || dtype == Dtype::bf16 || dtype == Dtype::i64 || dtype == Dtype::u8 ||
        dtype == Dtype::boolean)
      out.push_back(dtype);
  return out.empty() ? dtypes_of(card) : out;
}

/// The first of each op that devices are asked for.
std::vector<const Sample*> first_samples() {
  std::set<std::string_view> seen;
  std::vector<const Sample*> out;
  for (const Sample& sample : op_samples())
    if (sample.card->view == nullptr && seen.insert(sample.card->name).second) out.push_back(&sample);
  return out;
}

}  // namespace

std::vector<DeviceCase> tessera::fixture::calls_of_every_op() {
  std::vector<DeviceCase> out;
  std::map<std::string_view, std::size_t> turns;
  std::size_t count = 0;
  for (const Sample& sample : op_samples()) {
    if (sample.card->view != nullptr) continue;  // devices are not asked
    const auto dtypes = few_dtypes(*sample.card);
    const std::size_t turn = turns[sample.card->name]++;
    add(out, sample, dtypes[++count % 2 == 0 ? 0 : turn % dtypes.size()], sample.sizes);
  }
  return out;
}

std::vector<DeviceCase> tessera::fixture::plans_of_every_op() {
  std::vector<DeviceCase> out = calls_of_every_op();
  // Its size is not known to a plan.
  std::erase_if(out, [](const DeviceCase& one) { return one.sample->card->traits.data_dependent; });
  for (const Sample& sample : op_samples())
    if (sample.card->view != nullptr) add(out, sample, few_dtypes(*sample.card).front(), sample.sizes);
  return out;
}

std::vector<DeviceCase> tessera::fixture::calls_of_zero_and_many() {
  std::vector<DeviceCase> out;
  for (const Sample* sample : first_samples())
    for (const std::int64_t size : {0, 67})
      for (const auto& [name, symbol] : sample->symbols) {
        Sample::Sizes sizes = sample->sizes;
        sizes[name] = size;
        add(out, *sample, few_dtypes(*sample->card).front(), sizes);
      }
  return out;
}

std::vector<DeviceCase> tessera::fixture::calls_of_one() {
  std::vector<DeviceCase> out;
  std::size_t pointwise = 0;
  for (const Sample* sample : first_samples()) {
    if (sample->card->pointwise != nullptr && ++pointwise % 12 != 0) continue;
    Sample::Sizes sizes = sample->sizes;
    for (const auto& [name, symbol] : sample->symbols) sizes[name] = 1;
    add(out, *sample, few_dtypes(*sample->card).front(), sizes);
  }
  return out;
}
