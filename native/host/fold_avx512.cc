// The folds with AVX-512; compiled with its flags (native/CMakeLists.txt).
#if defined(__x86_64__)
#define NCCLRUN_FOLD_TABLE kFoldAvx512
#include "host/fold_kernels.h"
#endif
