// The .npy format in memory; used for files and for the members of .npz archives.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "tessera/base/bytes.h"
#include "tessera/base/result.h"
#include "tessera/tensor/create.h"

namespace tessera::detail {

/// `name` is for messages.
[[nodiscard]] Result<Tensor> parse_npy(const std::string& name, std::span<const std::byte> data,
                                       const CreateOptions& options, Here here);
/// Everything before the elements. REQUIRES that the tensor is not empty.
[[nodiscard]] Result<std::string> npy_header(const Tensor& tensor);

}  // namespace tessera::detail
