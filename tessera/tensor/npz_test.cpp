// Archives that ask for more than their size, or for what is not theirs, are refused by their directory.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>
#include <zlib.h>

#include <filesystem>
#include <fstream>

#include "tessera/base/text.h"
#include "tessera/tensor/io.h"
#include "tessera/tensor/ops.h"
#include "tests/support/message.h"
#include "tests/support/repeats.h"

using namespace tessera;
using tessera::fixture::message_of;

namespace {

constexpr std::uint64_t mebibyte = std::uint64_t{1} << 20;

std::string little_endian(std::uint64_t value, std::size_t bytes) {
  std::string out;
  for (std::size_t i = 0; i < bytes; ++i, value >>= 8) out += static_cast<char>(value & 255);
  return out;
}

/// A member of an archive as the file has it. What is wrong with it is put in on purpose.
struct Entry {
  std::string name;
  std::string packed;
  std::uint64_t size = 0;
  std::uint32_t checksum = 0;
  int method = 0;
  int flags = 0;
};

std::uint32_t checksum(std::string_view text) {
  return static_cast<std::uint32_t>(
      crc32(0, reinterpret_cast<const Bytef*>(text.data()), static_cast<uInt>(text.size())));
}

std::string npy(std::uint64_t elements) {
  std::string head = cat("{'descr': '|u1', 'fortran_order': False, 'shape': (", elements, ",), }");
  head += std::string(117 - head.size(), ' ') + '\n';
  return cat(std::string("\x93NUMPY\1\0\x76\0", 10), head);
}

Entry plain(std::string name, std::uint64_t elements = 4) {
  const std::string content = npy(elements) + std::string(elements, 'x');
  return {std::move(name), content, content.size(), checksum(content)};
}

/// Deflated so that it can be repeated: it ends at a whole byte and refers to nothing before it.
std::string deflated(std::string_view text, bool is_last) {
  z_stream stream{};
  deflateInit2(&stream, 9, Z_DEFLATED, -MAX_WBITS, 9, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&stream, text.size()) + 16, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, is_last ? Z_FINISH : Z_FULL_FLUSH);
  out.resize(out.size() - stream.avail_out);
  deflateEnd(&stream);
  return out;
}

/// An array of so many MiB that are equal, the first bytes of each at random.
Entry compressed(std::string name, std::uint64_t mebibytes, std::size_t random_bytes = 0) {
  const std::string head = npy(mebibytes * mebibyte);
  std::string block(mebibyte, '\0');
  std::uint32_t state = 1;
  for (std::size_t i = 0; i < random_bytes; ++i)
    block[i] = static_cast<char>((state = state * 1664525U + 1013904223U) >> 24);
  const std::string packed = deflated(block, false);
  Entry out{.name = std::move(name), .packed = deflated(head, false), .size = head.size(), .method = 8};
  out.checksum = checksum(head);
  for (std::uint64_t i = 0; i < mebibytes; ++i) {
    out.packed += packed;
    out.size += block.size();
    out.checksum = static_cast<std::uint32_t>(
        crc32_combine(out.checksum, checksum(block), static_cast<z_off_t>(block.size())));
  }
  out.packed += deflated("", true);
  return out;
}

std::string header(const Entry& entry, bool is_local, std::uint64_t offset) {
  std::string out = is_local ? "PK\3\4" : cat("PK\1\2", little_endian(20, 2));
  out += cat(little_endian(20, 2), little_endian(static_cast<std::uint64_t>(entry.flags), 2),
             little_endian(static_cast<std::uint64_t>(entry.method), 2), little_endian(0, 4),
             little_endian(entry.checksum, 4), little_endian(entry.packed.size(), 4),
             little_endian(entry.size, 4), little_endian(entry.name.size(), 2), little_endian(0, 2));
  if (!is_local) out += cat(std::string(10, '\0'), little_endian(offset, 4));
  return out + entry.name;
}

std::string end_record(std::uint64_t members, std::uint64_t bytes, std::uint64_t begin) {
  return cat("PK\5\6", little_endian(0, 4), little_endian(members, 2), little_endian(members, 2),
             little_endian(bytes, 4), little_endian(begin, 4), little_endian(0, 2));
}

std::string archive_of(const std::vector<Entry>& entries) {
  std::string out, directory;
  for (const Entry& entry : entries) {
    directory += header(entry, false, out.size());
    out += header(entry, true, 0);
    out += entry.packed;
  }
  const std::size_t begin = out.size();
  return out + directory + end_record(entries.size(), directory.size(), begin);
}

/// The most that the process had since `forget_most_memory`.
void forget_most_memory() { std::ofstream("/proc/self/clear_refs") << 5; }
std::uint64_t most_memory() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
}

class Archives : public testing::Test {
 protected:
  Archives() : path_(std::filesystem::temp_directory_path() / cat("tessera_npz_test_", ::getpid(), ".npz")) {}
  ~Archives() override { std::filesystem::remove(path_); }

  [[nodiscard]] NamedTensors load(const std::string& content, const ArchiveLimits& limits = {}) const {
    std::ofstream(path_, std::ios::binary) << content;
    return load_npz(path_, {}, limits);
  }
  /// The message of the error, which begins with the file.
  [[nodiscard]] std::string refusal(const std::string& content, const ArchiveLimits& limits = {}) const {
    const std::string message = message_of([&] { (void)load(content, limits); });
    EXPECT_NE(message.find(path_), std::string::npos) << message;
    return message;
  }

 private:
  std::string path_;
};

#define EXPECT_SAYS(message, what) EXPECT_NE((message).find(what), std::string::npos) << (message)

TEST_F(Archives, Trap_U13_AMebibyteThatDecompressesToAGibibyteIsRefusedBefore) {
  const Entry bomb = compressed("bomb.npy", 1024);
  const std::string content = archive_of({plain("a.npy"), bomb});
  ASSERT_LT(content.size(), mebibyte * 12 / 10);
  forget_most_memory();
  const std::uint64_t before = most_memory();
  EXPECT_SAYS(refusal(content),
              cat("member 'bomb.npy' decompresses from ", bomb.packed.size(), " to ", bomb.size,
                  " bytes, 1012 to 1; at most 100 to 1 are allowed beyond 67108864 bytes"));
  EXPECT_LT(most_memory() - before, 64 * mebibyte);
}

TEST_F(Archives, Trap_U13_ManyMembersOfFewBytesAreRefusedTogether) {
  const std::string message = refusal(archive_of({compressed("a", 40), compressed("b", 41)}));
  EXPECT_SAYS(message, "the archive, and most of all its member 'b', decompresses from ");
  EXPECT_SAYS(message, "at most 100 to 1 are allowed");
}

/// It is the limit that refuses them.
TEST_F(Archives, WhatIsAllowedIsDecompressed) {
  const std::string content = archive_of({compressed("a", 40), compressed("b.npy", 41, 1000)});
  const NamedTensors arrays = load(content, {.ratio = 1100});
  EXPECT_EQ(arrays.at("a").shape(), (Shape{40 << 20}));
  EXPECT_EQ(arrays.at("b").shape(), (Shape{41 << 20}));
  EXPECT_NE(arrays.at("b").item<int>({7}), 0);
  EXPECT_EQ(arrays.at("b").item<int>({7}), arrays.at("b").item<int>({(40 << 20) + 7}));
  EXPECT_EQ(load(content, {.bytes_of_any_ratio = 100 * mebibyte}).size(), 2U);
}

TEST_F(Archives, Trap_U13_LimitsNameTheirValues) {
  const std::string content = archive_of({plain("a", 100), plain("b", 200), plain("c", 300)});
  EXPECT_EQ(load(content, {.members = 3, .member_bytes = 428, .total_bytes = 984}).size(), 3U);
  EXPECT_SAYS(refusal(content, {.members = 2}), "has 3 members, at most 2 are allowed");
  EXPECT_SAYS(refusal(content, {.member_bytes = 427}), "member 'c' has 428 bytes, at most 427 are allowed");
  EXPECT_SAYS(refusal(content, {.total_bytes = 983}),
              "with member 'c' the archive has 984 bytes decompressed, at most 983 are allowed");
}

/// As the archives do that decompress to more than their ratio: many entries of the directory have one content.
TEST_F(Archives, Trap_U13_EntriesThatOverlapAreRefused) {
  const Entry a = plain("a"), b = plain("b");
  const std::string local = header(a, true, 0) + a.packed;
  const std::string shared = header(a, false, 0) + header(b, false, 0);
  EXPECT_SAYS(refusal(cat(local, shared, end_record(2, shared.size(), local.size()))),
              cat("ends at ", local.size(), " and overlaps member"));
  // The second begins within the first.
  Entry outer = plain("a");
  outer.packed = header(b, true, 0) + b.packed;
  outer.size = outer.packed.size();
  const std::string nested = header(outer, true, 0) + outer.packed;
  const std::string two = header(outer, false, 0) + header(b, false, 31);
  EXPECT_SAYS(refusal(cat(nested, two, end_record(2, two.size(), nested.size()))),
              "and overlaps member 'b', which begins at 31");
  // The content is the directory.
  Entry long_one = a;
  long_one.packed += std::string(10, 'x');
  long_one.size += 10;
  const std::string one = header(long_one, false, 0);
  EXPECT_SAYS(refusal(cat(local, one, end_record(1, one.size(), local.size()))), "overlaps the directory");
}

TEST_F(Archives, Trap_U13_NamesThatLeadElsewhereAreRefused) {
  for (const std::string name : {"/etc/passwd", "\\x", "../x.npy", "a/../../x", "a\\..\\x", ".."})
    EXPECT_SAYS(refusal(archive_of({plain(name)})), "name") << name;
  EXPECT_SAYS(refusal(archive_of({plain(std::string("a\0.npy", 6))})), "has a NUL in its name");
  EXPECT_SAYS(refusal(archive_of({plain("a"), plain("a")})), "member 'a' stands twice");
  EXPECT_SAYS(refusal(archive_of({plain("a"), plain("a.npy")})), "stands for two arrays");
  EXPECT_EQ(load(archive_of({plain("..a"), plain("a/b..npy"), plain("a./b")})).size(), 3U);
  const std::string message = message_of([&] { save_npz("x", {{"../x", ones({1})}}); });
  EXPECT_SAYS(message, "'../x.npy' has a name that goes up with '..'");
}

TEST_F(Archives, Trap_U13_ContentsAreWhatTheDirectorySays) {
  Entry entry = plain("a");
  ++entry.checksum;
  EXPECT_SAYS(refusal(archive_of({entry})), "the checksum of member 'a' is wrong");
  entry = compressed("a", 1);
  ++entry.checksum;
  EXPECT_SAYS(refusal(archive_of({entry})), "the checksum of member 'a' is wrong");
  for (const int more : {-1, 1}) {
    entry = compressed("a", 1);
    entry.size += static_cast<std::uint64_t>(more);
    EXPECT_SAYS(refusal(archive_of({entry})), "in member 'a'");
  }
  entry = compressed("a", 1);
  entry.packed.pop_back();
  EXPECT_SAYS(refusal(archive_of({entry})), "ends too early");
  entry.packed += "xx";
  EXPECT_SAYS(refusal(archive_of({entry})), "in member 'a'");
  entry = plain("a");
  entry.flags = 1;
  EXPECT_SAYS(refusal(archive_of({entry})), "is encrypted");
  entry.flags = 0;
  entry.method = 12;
  EXPECT_SAYS(refusal(archive_of({entry})), "not supported (12)");
  // Few bytes that claim what no compression can hold, where every ratio is allowed.
  entry = compressed("a", 1);
  entry.size = std::uint64_t{1} << 31;
  EXPECT_SAYS(refusal(archive_of({entry}), {.ratio = ~std::uint64_t{0}}), "claims more than it can hold");
}

/// Directories of more than 65,535 members or 4 GiB have their sizes in a record of their own.
TEST_F(Archives, TheEndRecordMayBeALargeOne) {
  const Entry a = plain("a");
  const std::string local = header(a, true, 0) + a.packed, directory = header(a, false, 0);
  const std::string body = local + directory;
  const auto with_record = [&](std::uint64_t members, std::uint64_t begin, std::uint64_t record_at) {
    return cat(body, "PK\6\6", little_endian(44, 8), little_endian(0, 12), little_endian(members, 8),
               little_endian(members, 8), little_endian(directory.size(), 8), little_endian(begin, 8),
               "PK\6\7", little_endian(0, 4), little_endian(record_at, 8), little_endian(1, 4),
               end_record(0xffff, 0xffffffff, 0xffffffff));
  };
  EXPECT_EQ(load(with_record(1, local.size(), body.size())).size(), 1U);
  EXPECT_SAYS(refusal(with_record(2, local.size(), body.size())), "directory is broken");
  EXPECT_SAYS(refusal(with_record(1, ~std::uint64_t{0}, body.size())), "directory is not where it says");
  EXPECT_SAYS(refusal(with_record(1, local.size(), ~std::uint64_t{0})), "directory is broken");
}

TEST(Security, ThePageSaysTheLimitsOfArchives) {
  std::ifstream file(TESSERA_SOURCE_DIR "/SECURITY.md");
  const std::string page((std::istreambuf_iterator<char>(file)), {});
  const ArchiveLimits limits;
  EXPECT_EQ(limits.members, 65'536U);
  EXPECT_SAYS(page, "| archives | members | 65,536 | `ArchiveLimits::members` |");
  EXPECT_SAYS(page, cat("| bytes of a member, of all, decompressed | ", limits.member_bytes >> 30, " GiB, ",
                        limits.total_bytes >> 30, " GiB | `member_bytes`, `total_bytes` |"));
  EXPECT_SAYS(page, cat("| bytes decompressed for one in the file | ", limits.ratio, ", beyond ",
                        limits.bytes_of_any_ratio >> 20, " MiB | `ratio`, `bytes_of_any_ratio` |"));
}

TEST_F(Archives, Trap_U13_OneMemberAtATimeIsInMemory) {
  if (fixture::is_sanitized) GTEST_SKIP() << "a sanitizer keeps what was freed";
  std::vector<Entry> entries;
  for (int i = 0; i < 8; ++i) entries.push_back(compressed(cat("array ", i), 32, 20'000));
  const std::string content = archive_of(entries);
  forget_most_memory();
  const std::uint64_t before = most_memory();
  const NamedTensors arrays = load(content);
  EXPECT_EQ(arrays.size(), 8U);
  EXPECT_LT(most_memory() - before, (8 + 4) * 32 * mebibyte);
}

}  // namespace
