#include "tessera/tensor/zip.h"

#include <zlib.h>

#include <algorithm>
#include <memory>
#include <new>
#include <numeric>
#include <unordered_set>

#include "tessera/base/text.h"

using namespace tessera;
using namespace tessera::detail;

namespace {

constexpr std::uint32_t local_magic = 0x04034b50, central_magic = 0x02014b50, end_magic = 0x06054b50;
constexpr std::uint32_t large_end_magic = 0x06064b50, large_locator_magic = 0x07064b50;
constexpr std::uint64_t is_encrypted = 1;
constexpr std::uint16_t utf8_names = 0x800;  // the flag for names that are no ASCII
constexpr std::uint64_t method_stored = 0, method_deflated = 8;
constexpr std::uint64_t in_extra_16 = 0xffff, in_extra_32 = 0xffffffff;  // the value stands elsewhere
constexpr std::uint64_t max_archive_bytes = in_extra_32 - 1;             // of those that are written
constexpr std::size_t end_size = 22, central_size = 46, local_size = 30, large_locator_size = 20,
                      large_end_size = 56, max_comment = 65535;
/// Deflate packs at most so many bytes into one.
constexpr std::uint64_t max_deflated_ratio = 1032;

std::string shown(std::string_view name) { return cat("'", printable(shortened(name, 60)), "'"); }

/// Why a name cannot be that of a member; empty if it can. Nothing is ever written under these names: they are
/// refused so that nobody who passes them on writes elsewhere.
std::string_view fault_of_name(std::string_view name) {
  if (name.find('\0') != std::string_view::npos) return "has a NUL in its name";
  if (name.starts_with('/') || name.starts_with('\\')) return "has an absolute path for a name";
  for (std::size_t at = 0; at <= name.size();) {
    const std::size_t end = std::min(name.find_first_of("/\\", at), name.size());
    if (name.substr(at, end - at) == "..") return "has a name that goes up with '..'";
    at = end + 1;
  }
  return "";
}

/// So many times the packed bytes, rounded up.
std::uint64_t ratio_of(std::uint64_t size, std::uint64_t packed) {
  return packed == 0 ? size : (size + packed - 1) / packed;
}

class ZipReader {
 public:
  ZipReader(const std::string& name, std::span<const std::byte> data, const ArchiveLimits& limits)
      : name_(name), data_(data), limits_(limits) {}

  Result<std::vector<ZipMember>> run() {
    const Directory directory = TESSERA_TRY(find_directory());
    if (directory.members > limits_.members)
      return over(cat("has ", directory.members, " members, at most ", limits_.members, " are allowed"));
    std::vector<ZipMember> out;
    std::unordered_set<std::string> names;
    std::uint64_t at = directory.begin;
    for (std::uint64_t i = 0; i < directory.members; ++i) {
      if (at > directory.end || directory.end - at < central_size || number(at, 4) != central_magic)
        return fail("its directory is broken");
      const std::uint64_t length =
          central_size + number(at + 28, 2) + number(at + 30, 2) + number(at + 32, 2);
      if (length > directory.end - at) return fail("its directory is broken");
      out.push_back(TESSERA_TRY(member(at)));
      if (!names.insert(out.back().name).second) return fail(out.back(), "stands twice in the directory");
      TESSERA_TRY(check_limits(out.back()));
      at += length;
    }
    TESSERA_TRY(check_sum(out));
    TESSERA_TRY(check_places(out, directory.begin));
    return out;
  }

 private:
  struct Directory {
    std::uint64_t begin, end, members;
  };

  [[nodiscard]] Error fail(std::string_view why) const {
    return Error(ErrorCode::parse, cat(printable(name_), ": ", why));
  }
  [[nodiscard]] Error fail(const ZipMember& member, std::string_view why) const {
    return fail(cat("member ", shown(member.name), " ", why));
  }
  [[nodiscard]] Error over(std::string_view why) const {
    return Error(ErrorCode::limit, cat(printable(name_), ": ", why));
  }
  /// Bytes behind the end are zero.
  [[nodiscard]] std::uint64_t number(std::uint64_t at, std::size_t bytes) const {
    std::uint64_t out = 0;
    for (std::size_t i = 0; i < bytes && at + i < data_.size(); ++i)
      out |= std::to_integer<std::uint64_t>(data_[at + i]) << (8 * i);
    return out;
  }

  /// The end record stands at the end, with a comment behind it that has the length it says.
  Result<Directory> find_directory() const {
    for (std::size_t back = end_size; back <= data_.size() && back <= end_size + max_comment; ++back) {
      const std::size_t end = data_.size() - back;
      if (number(end, 4) == end_magic && number(end + 20, 2) == back - end_size) return directory_at(end);
    }
    return fail("this is no zip archive");
  }

  Result<Directory> directory_at(std::size_t end) const {
    std::uint64_t members = number(end + 10, 2), bytes = number(end + 12, 4), begin = number(end + 16, 4);
    std::uint64_t behind = end;  // where the directory must have ended
    const bool is_large = members == in_extra_16 || bytes == in_extra_32 || begin == in_extra_32;
    if (is_large && end >= large_locator_size && number(end - large_locator_size, 4) == large_locator_magic) {
      const std::uint64_t record = number(end - large_locator_size + 8, 8);
      if (record > end - large_locator_size || end - large_locator_size - record < large_end_size ||
          number(record, 4) != large_end_magic)
        return fail("its directory is broken");
      members = number(record + 32, 8);
      bytes = number(record + 40, 8);
      begin = number(record + 48, 8);
      behind = record;
    }
    if (begin > behind || bytes > behind - begin) return fail("its directory is not where it says");
    if (members > bytes / central_size) return fail("its directory is broken");
    return Directory{begin, begin + bytes, members};
  }

  /// REQUIRES that the entry is whole.
  Result<ZipMember> member(std::uint64_t at) const {
    ZipMember out;
    out.name.assign(reinterpret_cast<const char*>(data_.data()) + at + central_size, number(at + 28, 2));
    if (const std::string_view fault = fault_of_name(out.name); !fault.empty()) return fail(out, fault);
    if ((number(at + 8, 2) & is_encrypted) != 0) return fail(out, "is encrypted, which is not supported");
    const std::uint64_t method = number(at + 10, 2);
    out.checksum = static_cast<std::uint32_t>(number(at + 16, 4));
    out.packed = number(at + 20, 4);
    out.size = number(at + 24, 4);
    out.header = number(at + 42, 4);
    read_extra(at + central_size + number(at + 28, 2), number(at + 30, 2), out);
    out.is_deflated = method == method_deflated;
    if (method != method_deflated && (method != method_stored || out.packed != out.size))
      return fail(out, cat("is packed in a way that is not supported (", method, ")"));
    const bool is_there = out.header <= data_.size() && data_.size() - out.header >= local_size &&
                          number(out.header, 4) == local_magic;
    if (!is_there) return fail(out, "is not where the directory says");
    out.begin = out.header + local_size + number(out.header + 26, 2) + number(out.header + 28, 2);
    if (out.begin > data_.size() || out.packed > data_.size() - out.begin)
      return fail(out, cat("claims ", out.packed, " bytes, which are not there"));
    return out;
  }

  /// Values that do not fit 32 bits.
  void read_extra(std::uint64_t at, std::uint64_t bytes, ZipMember& member) const {
    const std::uint64_t end = at + bytes;
    while (end - at >= 4) {
      const std::uint64_t id = number(at, 2), length = number(at + 2, 2);
      at += 4;
      if (length > end - at) return;
      std::uint64_t value = at;
      at += length;
      if (id != 1) continue;
      for (std::uint64_t* field : {&member.size, &member.packed, &member.header})
        if (*field == in_extra_32 && at - value >= 8) {
          *field = number(value, 8);
          value += 8;
        }
    }
  }

  [[nodiscard]] bool is_over_ratio(std::uint64_t size, std::uint64_t packed) const {
    return size > limits_.bytes_of_any_ratio && ratio_of(size, packed) > limits_.ratio;
  }
  [[nodiscard]] std::string ratio_text(std::uint64_t size, std::uint64_t packed) const {
    return cat("decompresses from ", packed, " to ", size, " bytes, ", ratio_of(size, packed),
               " to 1; at most ", limits_.ratio, " to 1 are allowed beyond ", limits_.bytes_of_any_ratio,
               " bytes");
  }

  Result<void> check_limits(const ZipMember& member) const {
    if (member.size > limits_.member_bytes)
      return over(cat("member ", shown(member.name), " has ", member.size, " bytes, at most ",
                      limits_.member_bytes, " are allowed"));
    if (member.is_deflated && is_over_ratio(member.size, member.packed))
      return over(cat("member ", shown(member.name), " ", ratio_text(member.size, member.packed)));
    return {};
  }

  /// REQUIRES that each is within the limits.
  Result<void> check_sum(const std::vector<ZipMember>& members) const {
    std::uint64_t size = 0, packed = 0;
    for (const ZipMember& member : members) {
      packed += member.packed;
      size += member.size;
      if (size > limits_.total_bytes || size < member.size)
        return over(cat("with member ", shown(member.name), " the archive has ", size,
                        " bytes decompressed, at most ", limits_.total_bytes, " are allowed"));
    }
    if (!is_over_ratio(size, packed)) return {};
    const auto largest = std::max_element(members.begin(), members.end(), [](const auto& a, const auto& b) {
      return a.size - std::min(a.size, a.packed) < b.size - std::min(b.size, b.packed);
    });
    return over(cat("the archive, and most of all its member ", shown(largest->name), ", ",
                    ratio_text(size, packed)));
  }

  /// Nothing stands in two members, nor in one and the directory.
  Result<void> check_places(const std::vector<ZipMember>& members, std::uint64_t directory) const {
    std::vector<const ZipMember*> order(members.size());
    std::transform(members.begin(), members.end(), order.begin(), [](const ZipMember& m) { return &m; });
    std::sort(order.begin(), order.end(),
              [](const ZipMember* a, const ZipMember* b) { return a->header < b->header; });
    for (std::size_t i = 0; i < order.size(); ++i) {
      const ZipMember& member = *order[i];
      const ZipMember* next = i + 1 < order.size() ? order[i + 1] : nullptr;
      if (next != nullptr && member.end() > next->header)
        return fail(member, cat("ends at ", member.end(), " and overlaps member ", shown(next->name),
                                ", which begins at ", next->header));
      if (member.end() > directory)
        return fail(member, cat("ends at ", member.end(), " and overlaps the directory, which begins at ",
                                directory));
    }
    return {};
  }

  const std::string& name_;
  std::span<const std::byte> data_;
  const ArchiveLimits& limits_;
};

Error broken(std::string_view why) { return Error(ErrorCode::parse, cat("compressed data ", why)); }

/// The end of what zlib does, and how far it came.
Result<void> judge(int state, bool has_read_all, bool has_written_all) {
  switch (state) {
    case Z_STREAM_END:
      if (has_read_all && has_written_all) return {};
      return broken("has another length than it claims");
    case Z_MEM_ERROR:
      return Error(ErrorCode::memory, "no memory to decompress");
    case Z_BUF_ERROR:
      return broken(has_read_all ? "ends too early" : "has another length than it claims");
    default:
      return broken("is broken");
  }
}

Result<void> inflate_into(std::span<std::byte> out, std::span<const std::byte> in) {
  z_stream stream{};
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) return Error(ErrorCode::memory, "no memory to decompress");
  constexpr std::size_t max_part = std::size_t{1} << 30;  // zlib counts with 32 bits
  int state = Z_OK;
  while (state == Z_OK) {
    const std::size_t given = std::min(in.size(), max_part), wanted = std::min(out.size(), max_part);
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(in.data()));
    stream.avail_in = static_cast<uInt>(given);
    stream.next_out = reinterpret_cast<Bytef*>(out.data());
    stream.avail_out = static_cast<uInt>(wanted);
    state = ::inflate(&stream, Z_NO_FLUSH);
    in = in.subspan(given - stream.avail_in);
    out = out.subspan(wanted - stream.avail_out);
  }
  inflateEnd(&stream);
  return judge(state, in.empty(), out.empty());
}

Result<Bytes> inflated(std::span<const std::byte> packed, std::size_t size) {
  if (ratio_of(size, packed.size()) > max_deflated_ratio) return broken("claims more than it can hold");
  // One more, so that there is an address to write to where there is nothing to write.
  const std::shared_ptr<std::byte> memory(new (std::nothrow) std::byte[size + 1],
                                          std::default_delete<std::byte[]>());
  if (memory == nullptr) return Error(ErrorCode::memory, cat("no memory for ", size, " bytes"));
  const std::span<std::byte> content(memory.get(), size);
  TESSERA_TRY(inflate_into(content, packed));
  return Bytes(content, memory);
}

std::uint32_t checksum_of(std::span<const std::byte> data, std::uint32_t so_far = 0) {
  return static_cast<std::uint32_t>(
      ::crc32_z(so_far, reinterpret_cast<const Bytef*>(data.data()), data.size()));
}

void append_number(std::string& out, std::uint64_t value, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i) & 255);
}

bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

}  // namespace

Result<ZipArchive> ZipArchive::open(std::string name, Bytes file, const ArchiveLimits& limits) {
  auto members = TESSERA_TRY(ZipReader(name, file.span(), limits).run());
  return ZipArchive(std::move(name), std::move(file), std::move(members));
}

Result<Bytes> ZipArchive::content(const ZipMember& member) const {
  const auto packed = file_.span().subspan(member.begin, member.packed);
  auto out = member.is_deflated ? inflated(packed, member.size)
                                : Result<Bytes>(Bytes(packed, std::make_shared<const Bytes>(file_)));
  const auto where = [&] { return cat("in member ", shown(member.name), " of ", printable(name_)); };
  if (!out) return std::move(out).error().note(where());
  if (checksum_of(out->span()) != member.checksum)
    return Error(ErrorCode::parse,
                 cat(printable(name_), ": the checksum of member ", shown(member.name), " is wrong"));
  return out;
}

Result<void> ZipWriter::check_fits(const std::string& name, std::uint64_t size) const {
  const auto refuse = [&](std::string_view why) {
    return Error(ErrorCode::limit, cat(shown(name), " ", why));
  };
  if (const std::string_view fault = fault_of_name(name); !fault.empty())
    return Error(ErrorCode::invalid_argument, cat(shown(name), " ", fault));
  if (name.size() > 0xffff)
    return refuse(cat("has a name of ", name.size(), " bytes, an archive takes at most ", 0xffff));
  if (count_ == 0xffff) return refuse(cat("would be one member more than the ", 0xffff, " an archive takes"));
  if (size > max_archive_bytes || offset_ + size > max_archive_bytes)
    return refuse(
        cat("of ", size, " bytes does not fit an archive of 4 GiB, of which ", offset_, " are used"));
  return {};
}

Result<void> ZipWriter::add(const std::string& name, std::string_view head, std::span<const std::byte> body) {
  const std::uint64_t size = head.size() + body.size();
  TESSERA_TRY(check_fits(name, size));
  const std::uint32_t checksum = checksum_of(body, checksum_of(std::as_bytes(std::span(head))));
  std::string common;  // what the local header and the directory have in common
  append_number(common, 20, 2);
  append_number(common, is_ascii(name) ? 0 : utf8_names, 2);
  append_number(common, method_stored, 2);
  append_number(common, 0, 4);  // no time: the same tensors make the same bytes
  append_number(common, checksum, 4);
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
