// The environment of the process, read at one place.
#pragma once

namespace tessera {

/// The value of a variable, or null if it is not set, or if the program has rights that its user has not
/// (setuid, setgid, file capabilities): who starts such a program must not steer it.
[[nodiscard]] const char* environment(const char* variable);

}  // namespace tessera
