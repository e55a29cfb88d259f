#include "tessera/tensor/zip.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "tessera/base/file.h"
#include "tessera/base/text.h"
#include "tessera/tensor/call.h"
#include "tessera/tensor/inflate.h"
#include "tessera/tensor/io.h"
#include "tessera/tensor/npy.h"

using namespace tessera;
using namespace tessera::detail;

namespace {

constexpr std::uint32_t local_magic = 0x04034b50, central_magic = 0x02014b50, end_magic = 0x06054b50;
constexpr std::uint16_t utf8_names = 0x800;  // the flag for names that are no ASCII
constexpr std::uint64_t largest = 0xfffffffe;
constexpr std::size_t end_size = 22, central_size = 46, local_size = 30;

class ZipReader {
 public:
  ZipReader(const std::string& name, std::span<const std::byte> data) : name_(name), data_(data) {}

  Result<std::vector<ZipMember>> run() {
    const std::size_t end = TESSERA_TRY(find_end());
    const std::size_t count = number(end + 10, 2);
    std::size_t at = number(end + 16, 4);
    std::vector<ZipMember> out;
    for (std::size_t i = 0; i < count; ++i) {
      if (at > data_.size() || data_.size() - at < central_size || number(at, 4) != central_magic)
        return fail("its directory is broken");
      out.push_back(TESSERA_TRY(member(at)));
      at += central_size + number(at + 28, 2) + number(at + 30, 2) + number(at + 32, 2);
    }
    return out;
  }

 private:
  [[nodiscard]] Error fail(std::string_view why) const {
    return Error(ErrorCode::parse, cat(printable(name_), ": ", why));
  }
  [[nodiscard]] std::uint64_t number(std::size_t at, std::size_t bytes) const {
    std::uint64_t out = 0;
    for (std::size_t i = 0; i < bytes && at + i < data_.size(); ++i)
      out |= std::to_integer<std::uint64_t>(data_[at + i]) << (8 * i);
    return out;
  }

  Result<std::size_t> find_end() const {
    // The end record may have a comment of up to 65,535 bytes behind it.
    for (std::size_t back = end_size; back <= data_.size() && back <= end_size + 65535; ++back)
      if (number(data_.size() - back, 4) == end_magic) return data_.size() - back;
    return fail("this is no zip archive");
  }

  struct Sizes {
    std::uint64_t packed, unpacked, offset;
  };

  /// Values that do not fit 32 bits stand in an extra field.
  Result<Sizes> sizes(std::size_t at) const {
    Sizes out{number(at + 20, 4), number(at + 24, 4), number(at + 42, 4)};
    std::size_t extra = at + central_size + number(at + 28, 2);
    const std::size_t extra_end = extra + number(at + 30, 2);
    if (extra_end > data_.size()) return fail("its directory is broken");
    while (extra + 4 <= extra_end) {
      const std::size_t id = number(extra, 2), length = number(extra + 2, 2);
      std::size_t value = extra + 4;
      extra = value + length;
      if (id != 1 || extra > extra_end) continue;
      for (std::uint64_t* field : {&out.unpacked, &out.packed, &out.offset})
        if (*field == 0xffffffff && value + 8 <= extra) {
          *field = number(value, 8);
          value += 8;
        }
    }
    return out;
  }

  Result<ZipMember> member(std::size_t at) const {
    ZipMember out;
    const std::size_t name_length = number(at + 28, 2);
    if (data_.size() - at - central_size < name_length) return fail("its directory is broken");
    out.name.assign(reinterpret_cast<const char*>(data_.data()) + at + central_size, name_length);
    const auto [packed, unpacked, offset] = TESSERA_TRY(sizes(at));
    if (offset > data_.size() || data_.size() - offset < local_size || number(offset, 4) != local_magic)
      return fail(cat("member '", printable(shortened(out.name, 60)), "' is not where the directory says"));
    const std::uint64_t begin = offset + local_size + number(offset + 26, 2) + number(offset + 28, 2);
    if (begin > data_.size() || packed > data_.size() - begin)
      return fail(cat("member '", printable(shortened(out.name, 60)), "' claims ", packed,
                      " bytes, which are not there"));
    const auto raw = data_.subspan(begin, packed);
    const std::uint64_t method = number(at + 10, 2);
    if (method == 8) {
      auto inflated = inflate(raw, unpacked);
      if (!inflated)
        return std::move(inflated).error().note(
            cat("in member '", printable(shortened(out.name, 60)), "' of ", printable(name_)));
      out.unpacked = *std::move(inflated);
      out.data = out.unpacked;
    } else if (method == 0 && packed == unpacked) {
      out.data = raw;
    } else {
      return fail(cat("member '", printable(shortened(out.name, 60)),
                      "' is packed in a way that is not supported (", method, ")"));
    }
    if (crc32(out.data) != number(at + 16, 4))
      return fail(cat("the checksum of member '", printable(shortened(out.name, 60)), "' is wrong"));
    return out;
  }

  const std::string& name_;
  std::span<const std::byte> data_;
};

void append_number(std::string& out, std::uint64_t value, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i) & 255);
}

bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

constexpr auto crc_table = [] {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t value = i;
    for (int k = 0; k < 8; ++k) value = (value & 1) != 0 ? 0xedb88320U ^ (value >> 1) : value >> 1;
    table[i] = value;
  }
  return table;
}();

}  // namespace

std::uint32_t tessera::detail::crc32(std::span<const std::byte> data, std::uint32_t so_far) {
  std::uint32_t crc = ~so_far;
  for (std::byte byte : data)
    crc = crc_table[(crc ^ std::to_integer<std::uint32_t>(byte)) & 255] ^ (crc >> 8);
  return ~crc;
}

Result<std::vector<ZipMember>> tessera::detail::read_zip(const std::string& name,
                                                         std::span<const std::byte> archive) {
  return ZipReader(name, archive).run();
}

Result<void> ZipWriter::check_fits(const std::string& name, std::uint64_t size) const {
  const auto refuse = [&](std::string_view why) {
    return Error(ErrorCode::limit, cat("'", printable(shortened(name, 60)), "' ", why));
  };
  if (name.size() > 0xffff)
    return refuse(cat("has a name of ", name.size(), " bytes, an archive takes at most ", 0xffff));
  if (count_ == 0xffff) return refuse(cat("would be one member more than the ", 0xffff, " an archive takes"));
  if (size > largest || offset_ + size > largest)
    return refuse(
        cat("of ", size, " bytes does not fit an archive of 4 GiB, of which ", offset_, " are used"));
  return {};
}

Result<void> ZipWriter::add(const std::string& name, std::string_view head, std::span<const std::byte> body) {
  const std::uint64_t size = head.size() + body.size();
  TESSERA_TRY(check_fits(name, size));
  const std::uint32_t crc = crc32(body, crc32(std::as_bytes(std::span(head))));
  std::string common;  // what the local header and the directory have in common
  append_number(common, 20, 2);
  append_number(common, is_ascii(name) ? 0 : utf8_names, 2);
  append_number(common, 0, 2);
  append_number(common, 0, 4);  // no time: the same tensors make the same bytes
  append_number(common, crc, 4);
  append_number(common, size, 4);
  append_number(common, size, 4);
  append_number(common, name.size(), 2);
  append_number(common, 0, 2);
  std::string local;
  append_number(local, local_magic, 4);
  local += common + name;
  append_number(directory_, central_magic, 4);
  append_number(directory_, 20, 2);
  directory_ += common;
  directory_.append(10, '\0');
  append_number(directory_, offset_, 4);
  directory_ += name;
  offset_ += local.size() + size;
  local += head;
  kept_.push_back(std::move(local));
  order_.emplace_back(kept_.size() - 1, body);
  ++count_;
  return {};
}

std::vector<std::span<const std::byte>> ZipWriter::finish() {
  std::string end;
  append_number(end, end_magic, 4);
  append_number(end, 0, 4);
  append_number(end, count_, 2);
  append_number(end, count_, 2);
  append_number(end, directory_.size(), 4);
  append_number(end, offset_, 4);
  append_number(end, 0, 2);
  directory_ += end;
  std::vector<std::span<const std::byte>> out;
  for (const auto& [index, body] : order_) {
    out.push_back(std::as_bytes(std::span(kept_[index])));
    out.push_back(body);
  }
  out.push_back(std::as_bytes(std::span(directory_)));
  return out;
}

NamedTensors tessera::load_npz(const std::string& path, const CreateOptions& options, Here here) {
  const Bytes file = value_at(here, map_file(path));
  NamedTensors out;
  for (const ZipMember& member : value_at(here, read_zip(path, file.span()))) {
    std::string name = member.name;
    if (name.size() > 4 && name.ends_with(".npy")) name.resize(name.size() - 4);
    const auto refuse = [&](std::string_view why) {
      detail::fail(here, ErrorCode::parse,
                   cat(printable(path), ": the name '", printable(shortened(name, 60)), "' ", why));
    };
    if (!is_valid_utf8(name)) refuse("is not valid UTF-8");
    if (out.contains(name)) refuse("stands for two arrays");
    out[name] = value_at(here, parse_npy(cat(path, "/", member.name), member.data, options, here));
  }
  return out;
}

void tessera::save_npz(const std::string& path, const NamedTensors& tensors, Here here) {
  ZipWriter writer;
  for (const auto& [name, tensor] : tensors) {
    check_name("save_npz", name, tensor, here);
    const auto named = [&](Error error) {
      return std::move(error).note(cat("saving '", printable(shortened(name, 60)), "'"));
    };
    auto header = npy_header(tensor);
    if (!header) throw Exception(named(std::move(header).error()).at(span_of(here)));
    value_at(here, writer.add(name + ".npy", *header, tensor.bytes(here)));
  }
  value_at(here, write_file(path, writer.finish()));
}
