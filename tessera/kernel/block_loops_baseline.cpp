#define TESSERA_LOOPS baseline
#include "tessera/kernel/block_loops_impl.h"
