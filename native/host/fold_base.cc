// The folds with the instructions every machine of this architecture has.
#define NCCLRUN_FOLD_TABLE kFoldBase
#include "host/fold_kernels.h"
