// The devices of this build, by name.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/runtime/device.h"

namespace tessera::engine {

/// "reference", "cpu", "cuda:0" and so on if the driver has GPUs, and those that were registered.
[[nodiscard]] std::vector<std::string> device_names();

/// One device per name for the whole process, so that kernels and threads are shared. What a device may be
/// told stands behind its name: "cpu:precise" has functions of f32 within two units of the last place,
/// "cpu:threads=4" has so many threads, "cpu:precise:threads=4" both; "cuda" is "cuda:0", and "cuda:0:tf32"
/// is the same GPU with f32 products whose factors are rounded. An error lists the names there are, or says
/// what is wrong with it.
[[nodiscard]] Result<std::shared_ptr<runtime::Device>> find_device(std::string_view name);

/// Whether it is a name that a GPU can have, be it there or not.
[[nodiscard]] bool is_gpu_name(std::string_view name);

/// Makes a device of the embedding program known by its name. An error if the name is taken.
[[nodiscard]] Result<void> register_device(std::shared_ptr<runtime::Device> device);

/// What an engine uses that was not told: TESSERA_DEVICE, else the CPU.
[[nodiscard]] std::shared_ptr<runtime::Device> default_device();

/// What the compiler may choose from for a GPU, beside the libraries.
[[nodiscard]] pattern::Target gpu_target();

/// The plan of what is inside of a region, for devices that run regions body by body.
[[nodiscard]] Result<plan::PlanRef> plan_body(const ir::FunctionRef& body, const pattern::Target& target);

}  // namespace tessera::engine
