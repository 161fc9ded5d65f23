// Tables of a tuner and of a profiler: ncclrun must find them, and must not call them.
#include <stdlib.h>

#define EXPORTED __attribute__((visibility("default")))

static int never(void) {
  abort();
  return 0;
}

// As in every version: a name, then functions.
struct table {
  const char* name;
  int (*functions[5])(void);
};
#define TABLE(symbol)                        \
  EXPORTED extern const struct table symbol; \
  const struct table symbol = {"Other", {never, never, never, never, never}}

#ifdef NCCLRUN_TUNER
TABLE(ncclTunerPlugin_v2);
TABLE(ncclTunerPlugin_v5);
#endif
#ifdef NCCLRUN_PROFILER
TABLE(ncclProfiler_v1);
TABLE(ncclProfiler_v4);
#endif
