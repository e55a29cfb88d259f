#include "tessera/stream/instruction_json.h"

#include <algorithm>
#include <unordered_set>

#include "tessera/ir/print.h"
#include "tessera/ir/structural_equal.h"

using namespace tessera;
using namespace tessera::ir;
using namespace tessera::stream;

namespace {

constexpr std::size_t longest_type = 4096;  // bytes: types are written by people

bool is_integer_text(std::string_view text) { return text.find_first_of(".eE") == std::string_view::npos; }

bool is_word_start(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_word(char c) { return is_word_start(c) || (c >= '0' && c <= '9'); }

/// The names in a type that are neither dtypes nor followed by a bracket, as functions are: size symbols.
std::vector<std::string> symbols_in(std::string_view text) {
  std::vector<std::string> out;
  for (std::size_t i = 0; i < text.size();) {
    if (!is_word(text[i])) {
      ++i;
      continue;
    }
    std::size_t end = i;
    while (end < text.size() && is_word(text[end])) ++end;
    const std::string word(text.substr(i, end - i));
    const bool is_call = end < text.size() && text[end] == '(';
    const bool is_known = std::find(out.begin(), out.end(), word) != out.end();
    if (is_word_start(word[0]) && !parse_dtype(word) && !is_call && !is_known) out.push_back(word);
    i = end;
  }
  return out;
}

bool has_negative_size(const Type& type) {
  if (const auto* tuple = as<TupleType>(type))
    return std::any_of(tuple->elements.begin(), tuple->elements.end(),
                       [](const TypeRef& element) { return has_negative_size(*element); });
  const auto* tensor = as<TensorType>(type);
  return tensor != nullptr && std::any_of(tensor->shape.begin(), tensor->shape.end(), [](const Dim& dim) {
           return dim.is_constant() && dim.value() < 0;
         });
}

template <class T, class F>
Result<AttributeValue> list_of(const JsonItems& items, F&& read) {
  std::vector<T> out;
  for (const JsonCursor item : items) out.push_back(TESSERA_TRY(read(item)));
  return AttributeValue(std::move(out));
}

Result<AttributeValue> list_from_json(const JsonCursor& json) {
  const auto items = TESSERA_TRY(json.array());
  if (!items.empty() && items[0].is(Json::Kind::string))
    return list_of<std::string>(items, [](const JsonCursor& item) { return item.string(); });
  const bool all_integers = std::all_of(items.begin(), items.end(), [](const JsonCursor& item) {
    return !item.is(Json::Kind::number) || is_integer_text(item.value().text());
  });
  if (all_integers)
    return list_of<std::int64_t>(items, [](const JsonCursor& item) { return item.integer(); });
  return list_of<double>(items, [](const JsonCursor& item) { return item.number(); });
}

Result<Effect> effect_from_json(const JsonCursor& json) {
  const std::string name = TESSERA_TRY(json.string());
  if (const auto effect = parse_effect(name)) return *effect;
  return json.error(
      cat("expected \"write\", \"random\", \"read\" or \"none\", got ", quote(shortened(name, 40))));
}

Result<Attributes> attributes_from_json(const JsonCursor& json) {
  Attributes out;
  for (const auto& [name, value] : TESSERA_TRY(json.members()))
    out.set(name, TESSERA_TRY(attribute_from_json(value)));
  return out;
}

}  // namespace

Result<AttributeValue> tessera::stream::attribute_from_json(const JsonCursor& json) {
  switch (json.value().kind()) {
    case Json::Kind::boolean:
      return AttributeValue(json.value().boolean());
    case Json::Kind::number:
      if (is_integer_text(json.value().text())) return AttributeValue(TESSERA_TRY(json.integer()));
      return AttributeValue(TESSERA_TRY(json.number()));
    case Json::Kind::string:
      return AttributeValue(json.value().text());
    case Json::Kind::array:
      return list_from_json(json);
    case Json::Kind::null:
    case Json::Kind::object:
      break;
  }
  return json.error(cat("expected a boolean, a number, a string, or a list of numbers or of strings, got ",
                        describe(json.value().kind())));
}

Result<ValueId> InstructionReader::value(const JsonCursor& json) {
  const std::string name = TESSERA_TRY(json.string());
  if (name.empty()) return json.error("expected the name of a value, got an empty string");
  if (const ValueId* known = ids_.find(name)) return *known;
  return ids_.obtain(name, next_id_++);
}

Result<std::vector<ValueId>> InstructionReader::values(const JsonCursor& json) {
  std::vector<ValueId> out;
  for (const JsonCursor item : TESSERA_TRY(json.array())) out.push_back(TESSERA_TRY(value(item)));
  return out;
}

/// Only what was named before can die, and only once.
Result<std::vector<ValueId>> InstructionReader::freed_values(const JsonCursor& json) {
  std::vector<ValueId> out;
  std::unordered_set<ValueId> seen;
  const ValueId first_new = next_id_;
  for (const JsonCursor item : TESSERA_TRY(json.array())) {
    const ValueId id = TESSERA_TRY(value(item));
    if (id >= first_new) return item.error("expected a value that was named before");
    if (!seen.insert(id).second) return item.error("expected each value once");
    out.push_back(id);
  }
  return out;
}

Result<TypeRef> InstructionReader::type(const JsonCursor& json) {
  const std::string text = TESSERA_TRY(json.string());
  if (const TypeRef* known = types_.find(text)) return *known;
  const auto fail = [&](std::string_view why) {
    return json.error(
        cat("expected a type such as \"f32[2,N]\", got ", quote(shortened(text, 40)), ": ", why));
  };
  if (text.size() > longest_type) return fail(cat("it is longer than ", longest_type, " bytes"));
  std::string program;
  for (const std::string& symbol : symbols_in(text)) program += cat("free `", symbol, "`: i64\n");
  auto node = parse(cat(program, "type ", text), {.file = "<type>", .free_variables = &symbols_});
  if (!node) return fail(node.error().message());
  if ((*node)->kind() > NodeKind::tuple_type) return fail("it is no type");
  const TypeRef parsed(static_cast<const Type*>(node->operator->()));
  if (has_negative_size(*parsed)) return fail("a size is negative");
  return types_.obtain(text, parsed);
}

Result<InstructionReader::Types> InstructionReader::types(const JsonCursor& instruction) {
  Types out;
  const auto field = TESSERA_TRY(instruction.optional_field("types"));
  if (!field) return out;
  for (const auto& [name, text] : TESSERA_TRY(field->members())) out.emplace(name, TESSERA_TRY(type(text)));
  return out;
}

Result<void> InstructionReader::read_inputs(const JsonCursor& json, Types& types, OwnedInstruction& out) {
  const auto field = TESSERA_TRY(json.optional_field("inputs"));
  if (!field) return {};
  for (const JsonCursor item : TESSERA_TRY(field->array())) {
    if (item.is(Json::Kind::number)) {
      TESSERA_TRY(item.number());
      out.inputs.push_back(Input::parameter());
    } else if (item.is(Json::Kind::string)) {
      const auto at = types.find(item.value().text());
      out.inputs.push_back(Input::of(TESSERA_TRY(value(item)), at == types.end() ? TypeRef() : at->second));
    } else {
      return item.error(cat("expected the name of a value or a number, got ", describe(item.value().kind())));
    }
  }
  return {};
}

Result<void> InstructionReader::read_outputs(const JsonCursor& json, Types& types, OwnedInstruction& out) {
  const auto one = TESSERA_TRY(json.optional_field("output"));
  const auto several = TESSERA_TRY(json.optional_field("outputs"));
  if (one && several) return several->error("expected either 'output' or 'outputs', got both");
  std::vector<JsonCursor> items;
  if (one) items.push_back(*one);
  if (several)
    for (const JsonCursor item : TESSERA_TRY(several->array())) items.push_back(item);
  std::unordered_set<ValueId> seen;
  for (const JsonCursor item : items) {
    const ValueId id = TESSERA_TRY(value(item));
    if (!seen.insert(id).second)
      return item.error(
          cat("expected different outputs, got ", quote(shortened(item.value().text(), 40)), " twice"));
    const auto at = types.find(item.value().text());
    out.outputs.push_back({.value = id, .type = at == types.end() ? TypeRef() : at->second});
  }
  return {};
}

/// A type for a name that the instruction does not mention is a slip of the pen.
Result<void> InstructionReader::check_types_used(const JsonCursor& json, const Types& types,
                                                 const OwnedInstruction& out) {
  if (types.empty()) return {};
  std::unordered_set<ValueId> mentioned;
  for (const Input& input : out.inputs)
    if (!input.is_parameter) mentioned.insert(input.value);
  for (const Output& output : out.outputs) mentioned.insert(output.value);
  const JsonCursor field = TESSERA_TRY(json.field("types"));
  for (const auto& [name, type] : TESSERA_TRY(field.members())) {
    const ValueId* known = ids_.find(name);
    if (known == nullptr || !mentioned.contains(*known))
      return type.error(cat("expected types of inputs and outputs of this instruction, got one of ",
                            quote(shortened(name, 40))));
  }
  return {};
}

/// What is read has the type it was given before. An id that is also written may get another one: then the
/// type that is given here is that of the new value.
Result<void> InstructionReader::agree_with_known(const JsonCursor& json, OwnedInstruction& out) {
  for (std::size_t slot = 0; slot < out.inputs.size(); ++slot)
    if (!out.inputs[slot].is_parameter) TESSERA_TRY(agree_with_known(json, out, slot));
  for (const Output& output : out.outputs) known_.set(output.value, {output.type, {}, 0});
  for (const ValueId id : out.frees) known_.erase(id);
  return {};
}

Result<void> InstructionReader::agree_with_known(const JsonCursor& json, OwnedInstruction& out,
                                                 std::size_t slot) {
  Input& input = out.inputs[slot];
  Known& known = known_.obtain(input.value, Known{input.type, out.op, slot});
  if (known.type == nullptr) known.type = input.type;
  const bool is_written = std::any_of(out.outputs.begin(), out.outputs.end(),
                                      [&](const Output& output) { return output.value == input.value; });
  if (input.type == nullptr || is_written) input.type = known.type;
  if (input.type == known.type || structural_equal(*input.type, *known.type, CompareMode::strict)) return {};
  const std::string name = TESSERA_TRY(TESSERA_TRY(TESSERA_TRY(json.field("inputs")).array())[slot].string());
  if (!is_one_piece_ && known.op == out.op && known.slot == slot) {
    input.value = next_id_++;
    ids_.set(name, input.value);
    known_.set(input.value, {input.type, out.op, slot});
    return {};
  }
  const JsonCursor types = TESSERA_TRY(json.field("types"));
  return TESSERA_TRY(types.field(name))
      .error(cat("expected ", print_line(*known.type), ", the type ", quote(shortened(name, 40)),
                 " was given before, got ", print_line(*input.type)));
}

Result<OwnedInstruction> InstructionReader::instruction(const JsonCursor& json) {
  TESSERA_TRY(json.only_fields({"op", "inputs", "output", "outputs", "attrs", "types", "effect", "free"}));
  OwnedInstruction out;
  const JsonCursor op = TESSERA_TRY(json.field("op"));
  const std::string spelling = TESSERA_TRY(op.string());
  if (spelling.empty()) return op.error("expected the name of an op, got an empty string");
  Types types = TESSERA_TRY(this->types(json));
  TESSERA_TRY(read_inputs(json, types, out));
  TESSERA_TRY(read_outputs(json, types, out));
  TESSERA_TRY(check_types_used(json, types, out));
  if (const auto attrs = TESSERA_TRY(json.optional_field("attrs")))
    out.attributes = TESSERA_TRY(attributes_from_json(*attrs));
  if (const auto effect = TESSERA_TRY(json.optional_field("effect")))
    out.effect = TESSERA_TRY(effect_from_json(*effect));
  out.set_op(facts_.find(spelling));
  const auto free = TESSERA_TRY(json.optional_field("free"));
  if (free) out.frees = TESSERA_TRY(freed_values(*free));
  TESSERA_TRY(agree_with_known(json, out));
  // A stream may go on for ever with names that are always new.
  if (free && !is_one_piece_)
    for (const JsonCursor item : TESSERA_TRY(free->array())) ids_.erase(TESSERA_TRY(item.string()));
  return out;
}

Result<StreamFile> InstructionReader::stream(const JsonCursor& json) {
  TESSERA_TRY(json.only_fields({"stream", "live"}));
  is_one_piece_ = true;
  ids_.keep_all();
  types_.keep_all();
  known_.keep_all();
  StreamFile out;
  const JsonCursor list = TESSERA_TRY(json.field("stream"));
  for (const JsonCursor item : TESSERA_TRY(list.array()))
    out.instructions.push_back(TESSERA_TRY(instruction(item)));
  const ValueId known = next_id_;
  const auto live = TESSERA_TRY(json.optional_field("live"));
  if (!live) return out;
  out.has_live = true;
  for (const JsonCursor item : TESSERA_TRY(live->array())) {
    out.live.push_back(TESSERA_TRY(value(item)));
    if (out.live.back() >= known)
      return item.error(
          cat("expected a value of the stream, got ", quote(shortened(item.value().text(), 40))));
  }
  return out;
}
