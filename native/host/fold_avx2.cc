// The folds with AVX2; compiled with its flags (native/CMakeLists.txt).
#if defined(__x86_64__)
#define NCCLRUN_FOLD_TABLE kFoldAvx2
#include "host/fold_kernels.h"
#endif
