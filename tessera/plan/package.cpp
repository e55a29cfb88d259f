#include "tessera/plan/package.h"

#include <algorithm>
#include <cstring>

#include "tessera/base/file.h"
#include "tessera/base/text.h"
#include "tessera/ir/walk.h"
#include "tessera/op/catalogue.h"
#include "tessera/plan/archive_reader.h"
#include "tessera/plan/archive_schema.h"
#include "tessera/plan/archive_writer.h"
#include "tessera/plan/verify.h"

using namespace tessera;
using namespace tessera::plan;
using archive::Section;
using archive::section_count;

namespace {

constexpr std::string_view magic = "TSRPLAN\n";
constexpr std::uint64_t form_version = 3;

/// All numbers are 8 bytes, the lowest first. What is checked first stands first.
struct Header {
  std::uint64_t form = form_version;
  char writer[24] = TESSERA_VERSION;  ///< version of the library, filled up with zeros
  Hash128 schema;
  std::uint64_t file_bytes = 0;
  Hash128 checksum;  ///< of everything behind it
  std::uint64_t begins[section_count] = {};
  std::uint64_t sizes[section_count] = {};
};
constexpr std::size_t checksum_end = 8 + 8 + 24 + 16 + 8 + 16;
constexpr std::size_t header_bytes = checksum_end + 16 * section_count;

void put(std::string& out, std::uint64_t value) {
  for (int shift = 0; shift < 64; shift += 8) out += static_cast<char>(value >> shift & 0xff);
}

std::string to_text(const Header& header) {
  std::string out(magic);
  put(out, header.form);
  out.append(header.writer, sizeof header.writer);
  for (const std::uint64_t word :
       {header.schema.high, header.schema.low, header.file_bytes, header.checksum.high, header.checksum.low})
    put(out, word);
  for (std::size_t i = 0; i < section_count; ++i) put(out, header.begins[i]);
  for (std::size_t i = 0; i < section_count; ++i) put(out, header.sizes[i]);
  return out;
}

/// REQUIRES header_bytes of them.
Header header_of(std::string_view bytes) {
  std::size_t at = magic.size();
  const auto take = [&] {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 8)
      value |= std::uint64_t{static_cast<unsigned char>(bytes[at++])} << shift;
    return value;
  };
  Header out;
  out.form = take();
  std::memcpy(out.writer, bytes.data() + at, sizeof out.writer);
  at += sizeof out.writer;
  for (std::uint64_t* word :
       {&out.schema.high, &out.schema.low, &out.file_bytes, &out.checksum.high, &out.checksum.low})
    *word = take();
  for (std::uint64_t& begin : out.begins) begin = take();
  for (std::uint64_t& size : out.sizes) size = take();
  return out;
}

Hash128 checksum_of(std::string_view file) { return hash_text(file.substr(checksum_end)); }

std::string writer_text(const Header& header) {
  const auto* end = std::find(std::begin(header.writer), std::end(header.writer), '\0');
  return printable(std::string(std::begin(header.writer), end));
}

/// Whether this build can read the file at all, and all of it is there.
Result<void> check_header(const Header& header, std::string_view file) {
  const Header own;
  const std::string writer = writer_text(header);
  if (header.form != form_version)
    return Error(ErrorCode::unsupported, cat("the file has form ", header.form, " of plans, this version (",
                                             TESSERA_VERSION, ") reads form ", form_version));
  if (std::memcmp(header.writer, own.writer, sizeof own.writer) != 0)
    return Error(ErrorCode::unsupported, cat("the plan was made by version '", writer, "', this is version '",
                                             TESSERA_VERSION, "': compile it again"));
  if (header.schema != archive::schema())
    return Error(ErrorCode::unsupported, cat("the plan was made by another build of version '", writer,
                                             "', whose ops or plans are not the same: compile it again"));
  if (header.file_bytes != file.size())
    return Error(ErrorCode::parse,
                 cat("the file has ", file.size(), " bytes, but was written with ", header.file_bytes,
                     header.file_bytes > file.size() ? ": it is cut off" : ""));
  if (header.checksum != checksum_of(file))
    return Error(ErrorCode::parse, "the file is damaged: its checksum is not that of its content");
  for (std::size_t i = 0; i < section_count; ++i)
    if (header.begins[i] > file.size() || header.sizes[i] > file.size() - header.begins[i])
      return Error(ErrorCode::parse, "the file is damaged: a section lies outside of it");
  return {};
}

/// The first call of something that only this process knows.
Result<void> check_calls(const Plan& plan) {
  const auto check = [](std::string_view name, const op::Card* card, const ir::Span& at) -> Result<void> {
    if (card == nullptr) card = op::find_card(name);
    if (card != nullptr && op::is_in_catalogue(*card)) return {};
    return Error(ErrorCode::unsupported,
                 cat("the plan cannot be saved: '", printable(name),
                     "' is a function of this process and not an op of the catalogue"),
                 at.resolve());
  };
  for (const Step& step : plan.steps) {
    if (step.card != nullptr) TESSERA_TRY(check(step.card->name, step.card, step.span));
    if (step.function == nullptr) continue;
    for (const ir::Function* function : ir::functions_below(*step.function))
      for (const auto& statement : function->body)
        if (const auto* call = ir::as<ir::Call>(*statement->value))
          TESSERA_TRY(check(call->op, nullptr, statement->span()));
  }
  return {};
}

/// What one run gives must be what the next one takes, in sizes that never change, whatever the flags are
/// then.
Result<void> check_states(const Package& package, const Program& program) {
  const auto state = [&](const Program& of, std::size_t i) -> const op::ValueType& {
    return of.inputs[of.inputs.size() - package.states.size() + i];
  };
  const Program& first = package.programs.empty() ? program : package.programs.front();
  for (std::size_t i = 0; i < package.states.size(); ++i) {
    const op::ValueType& taken = state(program, i);
    const std::uint32_t given = package.states[i];
    if (given >= program.outputs.size() || !ir::constant_shape(taken.shape) ||
        program.type_of(program.outputs[given]) != taken || state(first, i) != taken)
      return Error(ErrorCode::parse, cat("the file is damaged: state ", i, " is no output"));
  }
  return {};
}

/// Each is an input, in their order.
Result<void> check_flags(const Package& package) {
  bool is_fine = package.flags.size() <= most_flags;
  for (std::size_t f = 0; f < package.flags.size() && is_fine; ++f)
    is_fine = package.flags[f].input < package.inputs.size() && package.flags[f].rank <= op::max_rank &&
              (f == 0 || package.flags[f - 1].input < package.flags[f].input);
  if (is_fine) return {};
  return Error(ErrorCode::parse, "the file is damaged: its flags are no inputs of it");
}

Result<Program> take_program(archive::Reader& reader, const Package& package) {
  auto out = reader.take<Program>();
  std::vector<std::shared_ptr<Plan>> plans;
  for (std::size_t p = 0; p < out.parts.size(); ++p)
    plans.push_back(std::make_shared<Plan>(reader.take<Plan>()));
  if (const auto& error = reader.failure()) return *error;
  const std::size_t taken = package.inputs.size() - package.flags.size();
  if (taken > out.inputs.size() || out.inputs.size() - taken != package.states.size() ||
      package.outputs.size() != out.outputs.size() || package.parameters.size() != out.parameters.size())
    return Error(ErrorCode::parse, "the file is damaged: not every input and output has a name");
  for (std::size_t p = 0; p < plans.size(); ++p) {
    auto fine = verify(*plans[p]);
    if (!fine) return std::move(fine).error().note(cat("part ", p + 1));
    out.parts[p].plan = std::move(plans[p]);
  }
  TESSERA_TRY(verify(out));
  TESSERA_TRY(check_states(package, out));
  return out;
}

Result<Package> read_package(const Bytes& bytes) {
  const std::string_view file(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (file.substr(0, magic.size()) != magic) return Error(ErrorCode::parse, "the file is no plan");
  if (file.size() < header_bytes) return Error(ErrorCode::parse, "the file is cut off within its header");
  const Header header = header_of(file);
  TESSERA_TRY(check_header(header, file));
  std::string_view sections[section_count];
  for (std::size_t i = 0; i < section_count; ++i)
    sections[i] = file.substr(header.begins[i], header.sizes[i]);
  const std::size_t data = static_cast<std::size_t>(Section::data);
  const auto owner = std::make_shared<const Bytes>(bytes);
  archive::Reader reader(sections, {owner->span().subspan(header.begins[data], header.sizes[data]), owner});
  auto out = reader.take<Package>();
  if (const auto& error = reader.failure()) return *error;
  TESSERA_TRY(check_flags(out));
  for (std::size_t v = 0; v < out.variants(); ++v)
    out.programs.push_back(TESSERA_TRY(take_program(reader, out)));
  if (auto error = reader.finish()) return *std::move(error);
  return out;
}

}  // namespace

op::ValueType plan::type_of(const Flag& flag) {
  return {.dtype = op::Dtype::boolean, .shape = op::Shape(flag.rank, op::Dim(1))};
}

op::ValueTypes plan::input_types(const Package& package) {
  const auto& taken = package.programs.front().inputs;
  op::ValueTypes out(taken.begin(), taken.end() - static_cast<std::ptrdiff_t>(package.states.size()));
  for (const Flag& flag : package.flags) out.insert(out.begin() + flag.input, type_of(flag));
  return out;
}

std::string plan::variant_text(std::span<const std::string> inputs, std::span<const Flag> flags,
                               std::size_t variant) {
  std::string out;
  for (std::size_t f = 0; f < flags.size(); ++f)
    out += cat(f == 0 ? "" : ", ", printable(inputs[flags[f].input]), " = ",
               is_set(variant, f) ? "true" : "false");
  return out;
}

Result<std::string> plan::to_bytes(const Package& package) {
  TESSERA_CHECK(package.programs.size() == package.variants(), "a program for all values of the flags");
  archive::Writer writer;
  writer.add(package);
  for (const Program& program : package.programs) {
    for (const Part& part : program.parts) TESSERA_TRY(check_calls(*part.plan));
    writer.add(program);
    for (const Part& part : program.parts) writer.add(*part.plan);
  }
  Header header;
  header.schema = archive::schema();
  std::string out(header_bytes, '\0');
  for (std::size_t i = 0; i < section_count; ++i) {
    const std::string& section = writer.section(static_cast<Section>(i));
    out.resize((out.size() + archive::data_alignment - 1) / archive::data_alignment *
               archive::data_alignment);
    header.begins[i] = out.size();
    header.sizes[i] = section.size();
    out += section;
  }
  header.file_bytes = out.size();
  std::string head = to_text(header);
  out.replace(0, head.size(), head);
  header.checksum = checksum_of(out);
  head = to_text(header);
  return out.replace(0, head.size(), head);
}

Result<Package> plan::from_bytes(const Bytes& bytes, const std::string& name) {
  auto out = read_package(bytes);
  if (!out) return std::move(out).error().at({printable(name), 0, 0});
  return out;
}

Result<void> plan::save(const Package& package, const std::string& path) {
  const std::string bytes = TESSERA_TRY(to_bytes(package));
  const std::span<const std::byte> parts[] = {std::as_bytes(std::span(bytes.data(), bytes.size()))};
  return write_file(path, parts);
}

Result<Package> plan::load(const std::string& path) {
  const Bytes bytes = TESSERA_TRY(map_file(path));
  return from_bytes(bytes, path);
}

bool plan::is_package(const std::string& path) {
  const auto bytes = map_file(path);
  return bytes && bytes->size() >= magic.size() &&
         std::memcmp(bytes->data(), magic.data(), magic.size()) == 0;
}
