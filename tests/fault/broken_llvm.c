/* A library that has the name of LLVM and none of its functions. */
int tessera_no_llvm(void) { return 0; }
