// Reading and writing tensors: NumPy's .npy and .npz, and safetensors. A file is checked as a whole before
// anything is made of it; what is wrong is said with its name. Names of tensors are UTF-8.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "tessera/tensor/create.h"

namespace tessera {

using NamedTensors = std::map<std::string, Tensor>;

/// One array. Either byte order and either order of axes; the tensor is row by row.
Tensor load_npy(const std::string& path, const CreateOptions& options = {}, Here here = {});
void save_npy(const std::string& path, const Tensor& tensor, Here here = {});

/// What an archive may ask for. All of it is known from the directory, and checked before anything is
/// decompressed.
struct ArchiveLimits {
  std::uint64_t members = 65'536;
  std::uint64_t member_bytes = std::uint64_t{16} << 30;  ///< of one member, decompressed
  std::uint64_t total_bytes = std::uint64_t{64} << 30;   ///< of all members, decompressed
  std::uint64_t ratio = 100;  ///< decompressed bytes for one in the file, of a member and of all
  std::uint64_t bytes_of_any_ratio = std::uint64_t{64} << 20;  ///< so many may have any ratio
};

/// Several arrays by name, stored or compressed, one after the other: no two are in memory decompressed beside
/// their tensors. Members that overlap, encrypted ones, and names that are absolute, go up, or stand for two
/// arrays are refused.
NamedTensors load_npz(const std::string& path, const CreateOptions& options = {},
                      const ArchiveLimits& limits = {}, Here here = {});
/// Written without compression.
void save_npz(const std::string& path, const NamedTensors& tensors, Here here = {});

/// Tensors by name. The file is mapped, not copied, where its alignment allows it. `metadata`, if given,
/// receives the texts stored beside the tensors.
NamedTensors load_safetensors(const std::string& path, const CreateOptions& options = {},
                              std::map<std::string, std::string>* metadata = nullptr, Here here = {});
void save_safetensors(const std::string& path, const NamedTensors& tensors,
                      const std::map<std::string, std::string>& metadata = {}, Here here = {});

}  // namespace tessera
