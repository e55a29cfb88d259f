#include <algorithm>
#include <cstring>

#include "tessera/base/checked.h"
#include "tessera/base/file.h"
#include "tessera/base/json.h"
#include "tessera/base/text.h"
#include "tessera/tensor/call.h"
#include "tessera/tensor/io.h"

using namespace tessera;
using detail::value_at;

namespace {

constexpr std::pair<std::string_view, Dtype> dtype_names[] = {
    {"F64", Dtype::f64},     {"F32", Dtype::f32}, {"F16", Dtype::f16}, {"BF16", Dtype::bf16},
    {"I64", Dtype::i64},     {"I32", Dtype::i32}, {"I16", Dtype::i16}, {"I8", Dtype::i8},
    {"U8", Dtype::u8},       {"U16", Dtype::u16}, {"U32", Dtype::u32}, {"U64", Dtype::u64},
    {"BOOL", Dtype::boolean}};

struct Entry {
  std::string name;
  Dtype dtype = Dtype::f32;
  Shape shape;
  std::size_t begin = 0;
  std::size_t end = 0;
};

Result<Dtype> dtype_of_name(const JsonCursor& at) {
  const std::string name = TESSERA_TRY(at.string());
  for (const auto& [known, dtype] : dtype_names)
    if (known == name) return dtype;
  return at.error(cat("dtype '", printable(shortened(name, 40)), "' is not supported"));
}

Result<Entry> parse_entry(std::string name, const JsonCursor& at, std::size_t available) {
  TESSERA_TRY(at.only_fields({"dtype", "shape", "data_offsets"}));
  Entry out{.name = std::move(name)};
  out.dtype = TESSERA_TRY(dtype_of_name(TESSERA_TRY(at.field("dtype"))));
  for (const JsonCursor dim : TESSERA_TRY(TESSERA_TRY(at.field("shape")).array())) {
    out.shape.push_back(TESSERA_TRY(dim.integer()));
    if (out.shape.back() < 0) return dim.error("a size is negative");
  }
  if (out.shape.size() > 16) return at.error("the shape has more than 16 axes");
  const JsonCursor offsets = TESSERA_TRY(at.field("data_offsets"));
  const auto pair = TESSERA_TRY(offsets.array());
  if (pair.size() != 2) return offsets.error("expected two offsets");
  const std::int64_t begin = TESSERA_TRY(pair[0].integer()), end = TESSERA_TRY(pair[1].integer());
  if (begin < 0 || end < begin || static_cast<std::size_t>(end) > available)
    return offsets.error(
        cat("offsets ", begin, " to ", end, " are outside the ", available, " bytes of data"));
  const auto count = checked_product(out.shape);
  const auto bytes =
      count ? checked_mul<std::int64_t>(*count, static_cast<std::int64_t>(ir::size_of(out.dtype)))
            : std::nullopt;
  if (!bytes || *bytes != end - begin)
    return at.error(cat("shape and dtype do not fit the ", end - begin, " bytes between the offsets"));
  out.begin = static_cast<std::size_t>(begin);
  out.end = static_cast<std::size_t>(end);
  return out;
}

/// No byte may belong to two tensors.
Result<void> reject_overlaps(const std::string& path, std::vector<Entry> entries) {
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  for (std::size_t i = 1; i < entries.size(); ++i)
    if (entries[i].begin < entries[i - 1].end)
      return Error(ErrorCode::parse, cat(printable(path), ": tensors '", printable(entries[i - 1].name),
                                         "' and '", printable(entries[i].name), "' overlap"));
  return {};
}

struct Parsed {
  std::vector<Entry> entries;
  std::map<std::string, std::string> metadata;
  std::size_t data_begin = 0;
};

Result<Parsed> parse_header(const std::string& path, std::span<const std::byte> file) {
  const auto fail = [&](std::string_view why) {
    return Error(ErrorCode::parse, cat(printable(path), ": ", why));
  };
  if (file.size() < 8) return fail("this is no safetensors file");
  std::uint64_t length = 0;
  for (std::size_t i = 0; i < 8; ++i) length |= std::to_integer<std::uint64_t>(file[i]) << (8 * i);
  if (length > file.size() - 8 || length > (std::uint64_t{100} << 20))
    return fail(cat("the header claims ", length, " bytes, the file has ", file.size() - 8));
  std::string text(reinterpret_cast<const char*>(file.data()) + 8, length);
  const JsonDocument document = TESSERA_TRY(JsonDocument::parse(path, std::move(text)));
  Parsed out;
  out.data_begin = 8 + static_cast<std::size_t>(length);
  for (const auto& [name, at] : TESSERA_TRY(document.cursor().members())) {
    if (name == "__metadata__") {
      for (const auto& [key, value] : TESSERA_TRY(at.members()))
        out.metadata[key] = TESSERA_TRY(value.string());
    } else {
      out.entries.push_back(TESSERA_TRY(parse_entry(name, at, file.size() - out.data_begin)));
    }
  }
  TESSERA_TRY(reject_overlaps(path, out.entries));
  return out;
}

void write_metadata(JsonWriter& json, const std::map<std::string, std::string>& metadata, Here here) {
  json.key("__metadata__").begin_object();
  for (const auto& [key, value] : metadata) {
    if (!is_valid_utf8(key) || !is_valid_utf8(value))
      detail::fail(here, cat("save_safetensors: the metadata '", printable(shortened(key, 60)),
                             "' is not valid UTF-8"));
    json.member(key, value);
  }
  json.end_object();
}

std::string_view name_of(Dtype dtype) {
  return std::find_if(std::begin(dtype_names), std::end(dtype_names),
                      [&](const auto& entry) { return entry.second == dtype; })
      ->first;
}

/// The header behind its length, filled up so that the data is aligned.
std::string with_length(std::string_view json) {
  std::string out(8, '\0');
  out += json;
  while (out.size() % 8 != 0) out += ' ';
  const std::uint64_t length = out.size() - 8;
  for (std::size_t i = 0; i < 8; ++i) out[i] = static_cast<char>(length >> (8 * i) & 255);
  return out;
}

}  // namespace

NamedTensors tessera::load_safetensors(const std::string& path, const CreateOptions& options,
                                       std::map<std::string, std::string>* metadata, Here here) {
  const Bytes file = value_at(here, map_file(path));
  Parsed parsed = value_at(here, parse_header(path, file.span()));
  if (metadata != nullptr) *metadata = std::move(parsed.metadata);
  NamedTensors out;
  for (const Entry& entry : parsed.entries) {
    CreateOptions each = options;
    each.dtype = entry.dtype;
    const auto bytes = file.span().subspan(parsed.data_begin + entry.begin, entry.end - entry.begin);
    const bool aligned = reinterpret_cast<std::uintptr_t>(bytes.data()) % ir::size_of(entry.dtype) == 0;
    // The mapping is private, so that the tensor may be read as memory of the caller; `file` keeps it alive.
    out[entry.name] = aligned && !bytes.empty()
                          ? from_memory(
                                const_cast<std::byte*>(bytes.data()), entry.shape, [file] {}, each, here)
                          : from_bytes(bytes, entry.shape, each, here);
  }
  return out;
}

void tessera::save_safetensors(const std::string& path, const NamedTensors& tensors,
                               const std::map<std::string, std::string>& metadata, Here here) {
  for (const auto& [name, tensor] : tensors) {
    detail::check_name("save_safetensors", name, tensor, here);
    if (name == "__metadata__")
      detail::fail(here, "save_safetensors: the format keeps the name __metadata__ for itself");
  }
  JsonWriter json;
  json.begin_object();
  if (!metadata.empty()) write_metadata(json, metadata, here);
  std::size_t offset = 0;
  std::vector<std::span<const std::byte>> parts(1);
  for (const auto& [name, tensor] : tensors) {
    parts.push_back(tensor.bytes(here));
    json.key(name).begin_object().member("dtype", name_of(tensor.dtype())).member("shape", tensor.shape());
    json.key("data_offsets").begin_array().value(offset).value(offset + parts.back().size());
    json.end_array().end_object();
    offset += parts.back().size();
  }
  json.end_object();
  const std::string header = with_length(json.text());
  parts[0] = std::as_bytes(std::span(header));
  value_at(here, write_file(path, parts));
}
