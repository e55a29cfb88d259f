#define TESSERA_LOOPS x86_64_v3
#include "tessera/kernel/block_loops_impl.h"
