// What the cards say of ops, for the tests of modules that are handed it.
#pragma once

#include "tessera/op/op_facts.h"
