// The folds with AVX2; compiled with its flags (native/CMakeLists.txt).
#if defined(__x86_64__)
#define NCCLRUN_REDUCE_TABLE kReduceAvx2
#include "host/reduce_kernels.h"
#endif
