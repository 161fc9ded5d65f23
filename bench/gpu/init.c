/* --init: wall time of joining, of the first small and the first large all-reduce, and of leaving, in fresh processes.
 */
#include "init.h"

#include <stdio.h>
#include <string.h>

#include "measure.h"
#include "report.h"

enum { LARGE = 64 << 20 };

static double reduce_and_wait(Library* library, size_t bytes) {
  const double from = microseconds();
  const ncclResult_t result =
      library->AllReduce(plain_send, plain_receive, bytes / sizeof(float), ncclFloat, ncclSum, library->comm, stream);
  if (result != ncclSuccess) library_failed(library, "ncclAllReduce", result);
  if (result != ncclSuccess || stream_wait(library) != 0)
    die("%s: %s", library->name, shared->sentence[library->number]);
  return microseconds() - from;
}

int init_run(int number, int round) {
  Library* library = &libraries[number];
  measure_begin(LARGE); /* the context is there, and buffers */
  if (library_open(library) != 0) return 1;
  barrier();
  const double from = microseconds();
  if (library_join(library) != 0) return 1;
  const double join = largest(microseconds() - from);
  under_way(60, "%s: first operations", library->name);
  const double first = largest(reduce_and_wait(library, 8));
  const double large = largest(reduce_and_wait(library, LARGE));
  under_way(60, "%s: ncclCommDestroy", library->name);
  const double last = microseconds();
  library->CommDestroy(library->comm);
  report_init(number, round, join, first, large, largest(microseconds() - last));
  return 0;
}
