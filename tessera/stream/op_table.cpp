#include "tessera/stream/op_table.h"

#include <cstring>

#include "tessera/stream/mix.h"

using namespace tessera;
using namespace tessera::stream;

namespace {

template <class T>
void append_raw(std::string& out, const T& value) {
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  out.append(bytes, sizeof value);
}

void append_dtype(std::string& out, const std::optional<ir::Dtype>& dtype) {
  out += static_cast<char>(dtype ? static_cast<int>(*dtype) + 1 : 0);
}

void append_symbolic(std::string& out, const Pattern& pattern) {
  for (const SymbolicSizeRef& size : pattern.symbolic)
    for (const std::uint64_t word : words_by_id(*size)) append_raw(out, word);
}

/// Whether an output has the id of an input: the only thing about ids that overwritten_input looks at.
bool writes_what_it_reads(const Instruction& instruction) {
  for (const Output& output : instruction.outputs)
    for (const Input& input : instruction.inputs)
      if (!input.is_parameter && input.value == output.value) return true;
  return false;
}

}  // namespace

std::size_t OpTable::TextHash::operator()(std::string_view text) const {
  std::uint64_t hash = text.size();
  for (; text.size() >= 8; text.remove_prefix(8)) {
    std::uint64_t word;
    std::memcpy(&word, text.data(), 8);
    hash = mix(hash, word);
  }
  std::uint64_t rest = 0;
  if (!text.empty()) std::memcpy(&rest, text.data(), text.size());
  return mix(hash, rest);
}

/// The instruction as the caller spelled it. Cheaper than its canonical content, which needs the
/// content of types.
void OpTable::spell(const Instruction& instruction) {
  // The length is known before, so that nothing has to look whether there is room.
  constexpr std::size_t counts = 2 + 3 * sizeof(std::uint32_t), slot = 1 + sizeof(std::uintptr_t);
  spelled_.resize(counts + instruction.op.size() + slot * instruction.inputs.size() +
                  sizeof(std::uintptr_t) * instruction.outputs.size());
  char* at = spelled_.data();
  const auto put = [&](const auto& value) {
    std::memcpy(at, &value, sizeof value);
    at += sizeof value;
  };
  put(static_cast<std::uint32_t>(instruction.op.size()));
  put(static_cast<std::uint32_t>(instruction.inputs.size()));
  put(static_cast<std::uint32_t>(instruction.outputs.size()));
  put(static_cast<char>(instruction.effect));
  put(static_cast<char>(writes_what_it_reads(instruction)));
  for (const Input& input : instruction.inputs) {
    const std::uintptr_t dtype = input.dtype ? static_cast<std::uintptr_t>(*input.dtype) + 1 : 0;
    put(static_cast<char>(input.is_parameter));
    put(input.is_parameter ? dtype : reinterpret_cast<std::uintptr_t>(input.type.get()));
  }
  for (const Output& output : instruction.outputs) put(reinterpret_cast<std::uintptr_t>(output.type.get()));
  std::memcpy(at, instruction.op.data(), instruction.op.size());
  if (instruction.attributes == nullptr || instruction.attributes->empty()) return;
  attributes_.clear();
  append_op(attributes_, "", instruction.attributes, Effect::none);
  spelled_ += attributes_.bytes;
  for (const std::int64_t size : attributes_.sizes) append_raw(spelled_, size);
  append_symbolic(spelled_, attributes_);
}

InternedOp OpTable::intern(const Instruction& instruction) {
  spell(instruction);
  const std::uint64_t hash = TextHash()(spelled_);
  const std::size_t* first = by_spelling_.find(hash);
  for (std::size_t at = first == nullptr ? 0 : *first; at != 0; at = spellings_[at - 1].next)
    if (spellings_[at - 1].text == spelled_) return spellings_[at - 1].op;
  return intern_spelled(instruction, hash);
}

InternedOp OpTable::intern_spelled(const Instruction& instruction, std::uint64_t hash) {
  auto kind = std::make_shared<OpKind>();
  kind->op = instruction.op;
  if (instruction.attributes != nullptr) kind->attributes = *instruction.attributes;
  kind->effect = instruction.effect;
  kind->inputs.assign(instruction.inputs.begin(), instruction.inputs.end());
  for (const Output& output : instruction.outputs) kind->results.push_back(output.type);
  const Input* overwritten = overwritten_input(instruction);
  if (overwritten != nullptr) kind->results.push_back(overwritten->type);
  write_canonical(*kind);

  Spelling spelling;
  for (const Input& input : instruction.inputs) spelling.held.push_back(input.type);
  for (const Output& output : instruction.outputs) spelling.held.push_back(output.type);
  const auto [at, is_new] = by_content_.try_emplace(canonical_.bytes, next_);
  spelling.op = {at->second, kind->effect, overwritten != nullptr};
  const InternedOp out = spelling.op;
  spelling.text = spelled_;
  std::size_t& first = by_spelling_[hash];
  spelling.next = first;
  spellings_.push_back(std::move(spelling));
  first = spellings_.size();
  if (is_new) {
    kind->id = next_++;
    kinds_.emplace(kind->id, std::move(kind));
  }
  return out;
}

void OpTable::write_canonical(const OpKind& kind) {
  canonical_.clear();
  append_op(canonical_, kind.op, &kind.attributes, kind.effect);
  append_raw(canonical_.bytes, static_cast<std::uint32_t>(kind.inputs.size()));
  for (const Input& input : kind.inputs) {
    canonical_.bytes += static_cast<char>(input.is_parameter);
    if (input.is_parameter)
      append_dtype(canonical_.bytes, input.dtype);
    else
      append_type(canonical_, input.type.get());
  }
  for (const ir::TypeRef& type : kind.results) append_type(canonical_, type.get());
  append_raw(canonical_.bytes, static_cast<std::uint32_t>(canonical_.sizes.size()));
  for (const std::int64_t size : canonical_.sizes) append_raw(canonical_.bytes, size);
  append_symbolic(canonical_.bytes, canonical_);
}

OpKindRef OpTable::find(OpId id) const {
  const auto at = kinds_.find(id);
  return at == kinds_.end() ? nullptr : at->second;
}

void OpTable::shrink(const std::function<bool(OpId)>& is_used) {
  by_spelling_.clear();
  spellings_.clear();
  std::erase_if(by_content_, [&](const auto& entry) { return !is_used(entry.second); });
  std::erase_if(kinds_, [&](const auto& entry) { return !is_used(entry.first); });
}
