// The statics of a library that was opened at run time (base/program_end.h).
#pragma once

namespace tessera {

/// What the library makes from now on is not destroyed when the program ends: its calls of __cxa_atexit,
/// found by the names in its relocations, do nothing. A thread may then be inside of it until the process is
/// gone. `library` is what dlopen gave. False if the calls were not found: then nothing is changed.
[[nodiscard]] bool keep_later_statics(void* library);

}  // namespace tessera
