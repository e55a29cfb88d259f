// As much of zip archives as .npz needs: stored and deflated members, sizes of up to 4 GiB each (and larger
// ones by the 64-bit extension when reading).
#pragma once

#include <span>
#include <string>
#include <vector>

#include "tessera/base/result.h"

namespace tessera::detail {

struct ZipMember {
  std::string name;
  std::vector<std::byte> unpacked;  ///< if it was compressed
  std::span<const std::byte> data;  ///< within the archive or in `unpacked`
};

/// All members. Lengths and offsets are checked against the file, sums against the data.
[[nodiscard]] Result<std::vector<ZipMember>> read_zip(const std::string& name,
                                                      std::span<const std::byte> archive);

/// An archive of stored members; the pieces that go into the file one after another.
class ZipWriter {
 public:
  /// The data of one member in two parts; both must live until the archive is written.
  Result<void> add(const std::string& name, std::string_view head, std::span<const std::byte> body);
  [[nodiscard]] std::vector<std::span<const std::byte>> finish();

 private:
  [[nodiscard]] Result<void> check_fits(const std::string& name, std::uint64_t size) const;

  std::vector<std::string> kept_;
  std::vector<std::pair<std::size_t, std::span<const std::byte>>> order_;  ///< index into kept_, or the body
  std::string directory_;
  std::uint64_t offset_ = 0;
  std::uint16_t count_ = 0;
};

/// The CRC-32 of zip.
[[nodiscard]] std::uint32_t crc32(std::span<const std::byte> data, std::uint32_t so_far = 0);

}  // namespace tessera::detail
