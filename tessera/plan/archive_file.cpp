#include "tessera/plan/archive_file.h"

#include <algorithm>
#include <cstring>

#include "tessera/base/file.h"
#include "tessera/base/text.h"

using namespace tessera;
using namespace tessera::plan::archive;

namespace {

/// All numbers are 8 bytes, the lowest first. What is checked first stands first.
struct Header {
  std::string_view magic;
  std::uint64_t version = 0;          ///< of the form
  char writer[24] = TESSERA_VERSION;  ///< version of the library, filled up with zeros
  Hash128 schema;
  std::uint64_t file_bytes = 0;
  Hash128 checksum;  ///< of everything behind it
  std::uint64_t begins[section_count] = {};
  std::uint64_t sizes[section_count] = {};
};
constexpr std::size_t magic_bytes = 8;
constexpr std::size_t checksum_end = magic_bytes + 8 + 24 + 16 + 8 + 16;
constexpr std::size_t header_bytes = checksum_end + 16 * section_count;

void put(std::string& out, std::uint64_t value) {
  for (int shift = 0; shift < 64; shift += 8) out += static_cast<char>(value >> shift & 0xff);
}

std::string to_text(const Header& header) {
  std::string out(header.magic);
  put(out, header.version);
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
  std::size_t at = magic_bytes;
  const auto take = [&] {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 8)
      value |= std::uint64_t{static_cast<unsigned char>(bytes[at++])} << shift;
    return value;
  };
  Header out;
  out.magic = bytes.substr(0, magic_bytes);
  out.version = take();
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

Result<void> check_magic(std::string_view found, std::string_view wanted) {
  if (found == wanted) return {};
  if (found == graph_magic)
    return Error(ErrorCode::unsupported, "the file is the plan of a graph description, not of a program");
  if (found == program_magic)
    return Error(ErrorCode::unsupported, "the file is the plan of a program, not of a graph description");
  return Error(ErrorCode::parse, "the file is no plan");
}

/// Whether this build can read the file at all, and all of it is there.
Result<void> check_header(const Header& header, const FileForm& form, std::string_view file) {
  const Header own;
  const std::string writer = writer_text(header);
  if (header.version != form.version)
    return Error(ErrorCode::unsupported,
                 cat("the file has form ", header.version, " of plans, this version (", TESSERA_VERSION,
                     ") reads form ", form.version));
  if (std::memcmp(header.writer, own.writer, sizeof own.writer) != 0)
    return Error(ErrorCode::unsupported, cat("the plan was made by version '", writer, "', this is version '",
                                             TESSERA_VERSION, "': compile it again"));
  if (header.schema != form.schema)
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

}  // namespace

std::string plan::archive::to_file(const Writer& writer, const FileForm& form) {
  Header header{.magic = form.magic, .version = form.version, .schema = form.schema};
  std::string out(header_bytes, '\0');
  for (std::size_t i = 0; i < section_count; ++i) {
    const std::string& section = writer.section(static_cast<Section>(i));
    out.resize((out.size() + data_alignment - 1) / data_alignment * data_alignment);
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

Result<Reader> plan::archive::open_file(const Bytes& bytes, const FileForm& form) {
  const std::string_view file(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  TESSERA_TRY(check_magic(file.substr(0, magic_bytes), form.magic));
  if (file.size() < header_bytes) return Error(ErrorCode::parse, "the file is cut off within its header");
  const Header header = header_of(file);
  TESSERA_TRY(check_header(header, form, file));
  std::string_view sections[section_count];
  for (std::size_t i = 0; i < section_count; ++i)
    sections[i] = file.substr(header.begins[i], header.sizes[i]);
  const auto data = static_cast<std::size_t>(Section::data);
  const auto owner = std::make_shared<const Bytes>(bytes);
  return Reader(sections, {owner->span().subspan(header.begins[data], header.sizes[data]), owner});
}

Result<void> plan::archive::write_archive(const std::string& path, std::string_view bytes) {
  const std::span<const std::byte> parts[] = {std::as_bytes(std::span(bytes.data(), bytes.size()))};
  return write_file(path, parts);
}

bool plan::archive::begins_with(const std::string& path, std::string_view magic) {
  const auto bytes = map_file(path);
  return bytes && bytes->size() >= magic.size() &&
         std::memcmp(bytes->data(), magic.data(), magic.size()) == 0;
}
