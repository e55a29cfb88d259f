// Reading and writing tensors: NumPy's .npy and .npz, and safetensors. A file is checked as a whole before
// anything is made of it; what is wrong is said with its name. Names of tensors are UTF-8.
#pragma once

#include <map>
#include <string>

#include "tessera/tensor/create.h"

namespace tessera {

using NamedTensors = std::map<std::string, Tensor>;

/// One array. Either byte order and either order of axes; the tensor is row by row.
Tensor load_npy(const std::string& path, const CreateOptions& options = {}, Here here = {});
void save_npy(const std::string& path, const Tensor& tensor, Here here = {});

/// Several arrays by name, stored or compressed.
NamedTensors load_npz(const std::string& path, const CreateOptions& options = {}, Here here = {});
/// Written without compression.
void save_npz(const std::string& path, const NamedTensors& tensors, Here here = {});

/// Tensors by name. The file is mapped, not copied, where its alignment allows it. `metadata`, if given,
/// receives the texts stored beside the tensors.
NamedTensors load_safetensors(const std::string& path, const CreateOptions& options = {},
                              std::map<std::string, std::string>* metadata = nullptr, Here here = {});
void save_safetensors(const std::string& path, const NamedTensors& tensors,
                      const std::map<std::string, std::string>& metadata = {}, Here here = {});

}  // namespace tessera
