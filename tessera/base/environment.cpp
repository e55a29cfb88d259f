#include "tessera/base/environment.h"

#include <cstdlib>

const char* tessera::environment(const char* variable) { return ::secure_getenv(variable); }
