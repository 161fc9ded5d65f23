// The folds with AVX-512; compiled with its flags (native/CMakeLists.txt).
#if defined(__x86_64__)
#define NCCLRUN_REDUCE_TABLE kReduceAvx512
#include "host/reduce_kernels.h"
#endif
