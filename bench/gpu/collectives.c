/* collectives: NVIDIA's library ("theirs") and ours in turn, in the same processes, on the same buffers and stream.
 *
 *   bench/gpu/build.sh [DIRECTORY]                      compiles it: nvcc and gcc, nothing else
 *   collectives --gpus 4                                forks a process per GPU; ours then has an agent of its own
 *   ncclrun -n 4 collectives, mpirun -n 4 collectives   or torchrun: ranks of another launcher
 *
 *   --ours PATH, --theirs PATH   the libraries; NCCLRUN_HOME's, and that of python3's nvidia.nccl (or NVIDIA_NCCL)
 *   --only ours|theirs           one of them
 *   --sizes 8:1G | 8,64K,1M      bytes of the larger of a rank's buffers, in powers of two or as listed
 *   --collectives LIST           all_reduce,all_gather,reduce_scatter,broadcast,sendrecv,alltoall; only where named:
 *                                reduce,gather,scatter,alltoall-in-place (of the latter NVIDIA's library promises no
 *                                result; theirs is not checked)
 *   --modes LIST                 eager,graph,eager-window,graph-window
 *   --rounds N --milliseconds M  rounds per case and their length; both libraries in each round, in turn
 *   --seconds S                  limit per case: one that hangs is named, killed and left out from then on
 *   --barrier                    ncclrunBarrier against their all_reduce of 8 bytes
 *   --interference               what eager all_gathers of 64 MiB (--collectives, --sizes) cost products of matrices
 * beside
 *   --recorder                   ours with its flight recorder and without (NCCLRUN_RECORDER=off) instead: 31 rounds of
 *                                8 bytes, 4 KiB and 1 MiB, eager and in graphs, with the ratio's 95 % interval
 *   --enqueue                    how long an eager all_reduce of 8 bytes (--collectives, --sizes) keeps its caller
 *   --init [--rounds N]          wall time of ncclCommInitRank, first operations and ncclCommDestroy, each in fresh
 *                                processes that have a CUDA context already
 *   --json FILE                  the same as JSON, a line per row, appended
 *
 * Times are by CUDA events, of the slowest rank: the median over the rounds. Of what is captured in a graph the blocks
 * are counted too: so many SMs it takes. What the machine can do at best is measured in the same run and
 * stands above the rows: an empty kernel's time, and what copy engines and SMs move; each row has the floor
 * that follows: reductions have to go through SMs, what only moves may take the faster way. Each result is
 * checked once per case, element by element. Status 1 if anything was wrong, failed or hung. NVLink multicast stays off
 * unless NCCL_NVLS_ENABLE says otherwise: a fault there puts all GPUs of a host out of service. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "enqueue.h"
#include "init.h"
#include "interference.h"
#include "measure.h"
#include "options.h"
#include "report.h"
#include "supervise.h"

static Case case_of(int step) {
  const int sizes = options.sizes, kinds = options.kinds;
  const Case one = {options.kind[step / sizes % kinds], options.mode[step / (sizes * kinds)],
                    options.size[step % sizes]};
  return one;
}
static int steps(void) { return options.sizes * options.kinds * options.modes; }

static int has_windows(void) {
  for (int i = 0; i < options.modes; i++) {
    if (options.mode[i] >= EAGER_WINDOW) return 1;
  }
  return 0;
}

static void use_gpu(void) {
  int gpus = 0;
  if (cudaGetDeviceCount(&gpus) != cudaSuccess || gpus == 0) die("no GPU: %s", cudaGetErrorString(cudaGetLastError()));
  CUDA(cudaSetDevice(options.local_rank(rank) % gpus));
  CUDA(cudaFree(0));
}

static void set_up(void) {
  size_t max = 0;
  for (int i = 0; i < options.sizes; i++) max = options.size[i] > max ? options.size[i] : max;
  use_gpu();
  measure_begin(max < (64 << 20) ? 64 << 20 : max);
  for (int n = 0; n < LIBRARIES; n++) {
    if (!libraries[n].path || atomic_load(&shared->excluded[n])) continue;
    const int opened = library_open(&libraries[n]) == 0;
    if (options.recorder) setenv("NCCLRUN_RECORDER", n == OURS ? "on" : "off", 1);
    if (largest(!opened) == 0) library_join(&libraries[n]);
    if (rank == 0 && !libraries[n].usable) atomic_fetch_add(&shared->wrong, 1);
  }
  if (!shared->headed) report_head();
  atomic_store(&shared->stage, WINDOWS);
  for (int n = 0; n < LIBRARIES && has_windows(); n++) {
    Library* library = &libraries[n];
    if (!library->usable) continue;
    if (atomic_load(&shared->left_out[n][0][EAGER_WINDOW]))
      snprintf(library->why_no_window, 32, "hung before");
    else
      library_windows(library, window_bytes);
  }
  atomic_store(&shared->library, -1);
  if (shared->headed) return;
  Limits limits;
  measure_limits(&limits);
  if (rank == 0) shared->limits = limits;
  report_machine();
  barrier();
  shared->headed = 1;
}

static int all_cases(int unused) {
  Figure figures[LIBRARIES];
  (void)unused;
  barrier();
  set_up();
  barrier();
  atomic_store(&shared->stage, CASES);
  for (int step = atomic_load(&shared->step); step < steps(); step++) {
    const Case one = case_of(step);
    barrier();
    if (rank == 0) atomic_store(&shared->step, step);
    if (!case_exists(one)) continue;
    if (options.interference) {
      interference(one);
      continue;
    }
    if (options.enqueue) {
      enqueue_times(one);
      continue;
    }
    measure(one, figures);
    report_row(one, figures);
    if (options.recorder && rank == 0) report_ratio(one, figures);
    for (int n = 0; n < LIBRARIES; n++) {
      if (rank == 0 && (figures[n].wrong || !strcmp(figures[n].why_not, "failed"))) atomic_fetch_add(&shared->wrong, 1);
    }
  }
  for (int n = 0; n < LIBRARIES; n++) {
    under_way(60, "%s: ncclCommDestroy", libraries[n].name);
    if (libraries[n].usable) libraries[n].CommDestroy(libraries[n].comm);
  }
  barrier();
  if (rank == 0) atomic_store(&shared->step, steps());
  return 0;
}

/* Leaves out what hung or crashed, so that the rest can be measured: 0, or -1 if there is nothing to leave out. */
static int leave_out(void) {
  const int library = atomic_load(&shared->library), stage = atomic_load(&shared->stage);
  const int step = atomic_load(&shared->step);
  if (stage == CASES && step >= steps()) return -1;
  if (stage == CASES && library < 0) {
    atomic_store(&shared->step, step + 1);
  } else if (library < 0) {
    return -1;
  } else if (stage == CASES) {
    atomic_store(&shared->left_out[library][case_of(step).kind][case_of(step).mode], 1);
  } else if (stage == WINDOWS) {
    for (int kind = 0; kind < KINDS; kind++) {
      atomic_store(&shared->left_out[library][kind][EAGER_WINDOW], 1);
      atomic_store(&shared->left_out[library][kind][GRAPH_WINDOW], 1);
    }
  } else {
    atomic_store(&shared->excluded[library], 1);
  }
  return 0;
}

static void supervised_cases(void) {
  static const char* const words[] = {"ended", "failed", "hung", "crashed"};
  for (int restarts = 0; restarts <= LIBRARIES * KINDS * MODES; restarts++) {
    const Outcome outcome = supervise(all_cases, 0);
    if (outcome == ENDED) return;
    atomic_fetch_add(&shared->wrong, 1);
    report_lost(words[outcome], shared->what);
    if (leave_out() != 0) return;
  }
}

static int one_init(int argument) {
  use_gpu();
  return init_run(argument % LIBRARIES, argument / LIBRARIES);
}

static void supervised_inits(void) {
  int left_out[LIBRARIES] = {0};
  for (int i = 0; i < rounds * LIBRARIES; i++) {
    const int number = i % LIBRARIES;
    if (!libraries[number].path || left_out[number]) continue;
    if (supervise(one_init, i) == ENDED) continue;
    report_lost("failed", shared->what);
    left_out[number] = 1;
    atomic_fetch_add(&shared->wrong, 1);
  }
}

int main(int argc, char** argv) {
  setenv("NCCL_NVLS_ENABLE", "0", 0);
  if (dlsym(RTLD_DEFAULT, "ncclGetVersion")) {
    die("a library with NCCL's names is loaded already (LD_PRELOAD?): the two would call each other's functions");
  }
  read_options(argc, argv);
  if (options.init && rank == 0) {
    printf("%-12s %5s %12s %12s %12s %12s   (ms, the slowest rank)\n", "init", "round", "join", "first 8 B", "64 MiB",
           "destroy");
  }
  if (options.forks) {
    shared_inherit();
    if (options.init)
      supervised_inits();
    else
      supervised_cases();
    return atomic_load(&shared->wrong) != 0;
  }
  shared_by_parent();
  atomic_store(&shared->library, -1);
  watch_myself();
  if (!options.init) return all_cases(0) != 0 || atomic_load(&shared->wrong) != 0;
  for (int n = 0; n < LIBRARIES; n++) {
    if (libraries[n].path) return one_init(n);
  }
  return 1;
}
