// As much of zip archives as .npz needs: stored and deflated members, and the 64-bit extension when reading.
//
// The directory is checked as a whole, against the file and against limits, before anything is decompressed:
// members neither overlap nor lie outside of the file, their names are distinct and lead nowhere else.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tessera/base/bytes.h"
#include "tessera/base/result.h"
#include "tessera/tensor/io.h"

namespace tessera::detail {

struct ZipMember {
  std::string name;
  std::uint64_t header = 0;  ///< where its header begins
  std::uint64_t begin = 0;   ///< where its data begins
  std::uint64_t packed = 0;  ///< bytes in the file
  std::uint64_t size = 0;    ///< bytes of the content
  std::uint32_t checksum = 0;
  bool is_deflated = false;

  [[nodiscard]] std::uint64_t end() const { return begin + packed; }
};

/// Thread-safe.
class ZipArchive {
 public:
  /// `name` is for messages.
  [[nodiscard]] static Result<ZipArchive> open(std::string name, Bytes file, const ArchiveLimits& limits);

  [[nodiscard]] std::span<const ZipMember> members() const { return members_; }
  /// The content of one of the members: within the file if it is stored. Its length and checksum are right.
  [[nodiscard]] Result<Bytes> content(const ZipMember& member) const;

 private:
  ZipArchive(std::string name, Bytes file, std::vector<ZipMember> members)
      : name_(std::move(name)), file_(std::move(file)), members_(std::move(members)) {}

  std::string name_;
  Bytes file_;
  std::vector<ZipMember> members_;  ///< as the directory has them
};

/// An archive of stored members of up to 4 GiB together; the pieces that go into the file one after another.
class ZipWriter {
 public:
  /// The data of one member in two parts; both must live until the archive is written.
  Result<void> add(const std::string& name, std::string_view head, std::span<const std::byte> body);
  [[nodiscard]] std::vector<std::span<const std::byte>> finish();

 private:
  [[nodiscard]] Result<void> check_fits(const std::string& name, std::uint64_t size) const;

  std::vector<std::string> kept_;
  std::vector<std::pair<std::size_t, std::span<const std::byte>>> order_;  ///< index into kept_, and the body
  std::string directory_;
  std::uint64_t offset_ = 0;
  std::uint16_t count_ = 0;
};

}  // namespace tessera::detail
