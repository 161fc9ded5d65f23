#define _GNU_SOURCE
#include "options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "report.h"

static int local_rank(int of);
Options options = {.local_rank = local_rank};

static int number_from(const char* const* names) {
  for (int i = 0; names[i]; i++) {
    if (getenv(names[i])) return atoi(getenv(names[i]));
  }
  return -1;
}

static int local_rank(int of) {
  static const char* const names[] = {"LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID", NULL};
  const int local = options.forks ? -1 : number_from(names);
  return local < 0 ? of : local;
}

static size_t bytes_of(const char* text) {
  char* end;
  double value = strtod(text, &end);
  if (*end == 'K')
    value *= 1 << 10, end++;
  else if (*end == 'M')
    value *= 1 << 20, end++;
  else if (*end == 'G')
    value *= 1 << 30, end++;
  if (*end || value < 4) die("'%s' is no size in bytes: 4 or more, with K, M or G", text);
  return (size_t)value / 4 * 4;
}

static void add_size(size_t bytes) {
  if (options.sizes == MAX_SIZES) die("more than %d sizes", MAX_SIZES);
  options.size[options.sizes++] = bytes;
}

static void read_sizes(char* text) {
  char* colon = strchr(text, ':');
  options.sizes = 0;
  if (colon) {
    *colon = 0;
    const size_t last = bytes_of(colon + 1);
    for (size_t size = bytes_of(text); size <= last; size *= 2) add_size(size);
    return;
  }
  for (char* one = strtok(text, ","); one; one = strtok(NULL, ",")) add_size(bytes_of(one));
}

static int read_names(char* text, const char* const* names, int count, int* found) {
  int many = 0;
  for (char* one = strtok(text, ","); one; one = strtok(NULL, ",")) {
    int i = 0;
    while (i < count && strcmp(one, names[i]) != 0) i++;
    if (i == count || many == count) die("'%s' is not known, or said twice", one);
    found[many++] = i;
  }
  return many;
}

/* The library of NVIDIA's Python package. */
static const char* find_theirs(void) {
  static char path[1024];
  if (getenv("NVIDIA_NCCL")) return getenv("NVIDIA_NCCL");
  FILE* python = popen(
      "python3 -c 'import nvidia.nccl as n; print(list(n.__path__)[0] + \"/lib/libnccl.so.2\")' 2>/dev/null", "r");
  if (!python || !fgets(path, sizeof path, python)) path[0] = 0;
  if (python) pclose(python);
  path[strcspn(path, "\n")] = 0;
  return path[0] ? path : NULL;
}

static const char* find_ours(void) {
  static char path[1024];
  if (!getenv("NCCLRUN_HOME")) return NULL;
  snprintf(path, sizeof path, "%s/build/libnccl.so.2", getenv("NCCLRUN_HOME"));
  return path;
}

static void find_ranks(int gpus) {
  static const char* const numbers[] = {"RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID", NULL};
  static const char* const sizes[] = {"WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_NTASKS", NULL};
  options.forks = gpus > 0;
  rank = gpus > 0 ? 0 : number_from(numbers);
  ranks = gpus > 0 ? gpus : number_from(sizes);
  if (rank < 0 || ranks < 1) die("start it by ncclrun, mpirun or torchrun, or with --gpus N");
  if (ranks > MAX_RANKS) die("%d ranks: more than %d", ranks, MAX_RANKS);
}

static void defaults(const char* only) {
  if (options.sizes == 0) {
    char all[] = "8:1G";
    read_sizes(all);
  }
  if (options.kinds == 0) {
    while (options.kinds < USUAL) options.kind[options.kinds] = options.kinds, options.kinds++;
  }
  if (options.modes == 0) {
    while (options.modes < MODES) options.mode[options.modes] = options.modes, options.modes++;
  }
  if (!libraries[OURS].path) libraries[OURS].path = find_ours();
  if (options.recorder) {
    libraries[THEIRS].path = libraries[OURS].path;
    libraries[OURS].name = "recorder";
    libraries[THEIRS].name = "without";
  }
  if (!libraries[THEIRS].path && !(only && !strcmp(only, "ours"))) libraries[THEIRS].path = find_theirs();
  if (only && !strcmp(only, "ours"))
    libraries[THEIRS].path = NULL;
  else if (only && !strcmp(only, "theirs"))
    libraries[OURS].path = NULL;
  else if (only)
    die("--only ours or theirs, not '%s'", only);
  for (int n = 0; n < LIBRARIES; n++) {
    if (!libraries[n].path && rank == 0 && !only)
      fprintf(stderr, "collectives: no %s library: --%s PATH\n", libraries[n].name, libraries[n].name);
  }
  if (!libraries[OURS].path && !libraries[THEIRS].path) die("no library to measure");
}

void read_options(int argc, char** argv) {
  const char* only = NULL;
  int gpus = 0, rounds_said = 0;
  for (int i = 1; i < argc; i++) {
    char* name = argv[i];
    if (!strcmp(name, "--init")) {
      options.init = 1;
    } else if (!strcmp(name, "--interference")) {
      options.interference = options.kinds = options.sizes = options.modes = 1;
      options.kind[0] = ALL_GATHER;
      options.size[0] = 64 << 20;
      options.mode[0] = EAGER;
    } else if (!strcmp(name, "--enqueue")) {
      options.enqueue = options.kinds = options.sizes = options.modes = 1;
      options.kind[0] = ALL_REDUCE;
      options.size[0] = 8;
      options.mode[0] = EAGER;
    } else if (!strcmp(name, "--recorder")) {
      options.recorder = options.kinds = 1;
      options.kind[0] = ALL_REDUCE;
      options.sizes = 3;
      options.size[0] = 8;
      options.size[1] = 4 << 10;
      options.size[2] = 1 << 20;
      options.modes = 2;
      options.mode[0] = EAGER;
      options.mode[1] = GRAPH;
    } else if (!strcmp(name, "--barrier")) {
      options.kinds = options.sizes = 1;
      options.kind[0] = BARRIER;
      options.size[0] = 8;
      options.modes = 2;
      options.mode[0] = EAGER;
      options.mode[1] = GRAPH;
    } else if (i + 1 == argc) {
      die("'%s' is no option, or lacks its value: see the top of bench/gpu/collectives.c", name);
    } else {
      char* value = argv[++i];
      if (!strcmp(name, "--gpus"))
        gpus = atoi(value);
      else if (!strcmp(name, "--ours"))
        libraries[OURS].path = value;
      else if (!strcmp(name, "--theirs"))
        libraries[THEIRS].path = value;
      else if (!strcmp(name, "--only"))
        only = value;
      else if (!strcmp(name, "--sizes"))
        read_sizes(value);
      else if (!strcmp(name, "--collectives"))
        options.kinds = read_names(value, kind_names, KINDS, options.kind);
      else if (!strcmp(name, "--modes"))
        options.modes = read_names(value, mode_names, MODES, options.mode);
      else if (!strcmp(name, "--rounds"))
        rounds_said = rounds = atoi(value);
      else if (!strcmp(name, "--milliseconds"))
        round_milliseconds = atof(value);
      else if (!strcmp(name, "--seconds"))
        case_seconds = atof(value);
      else if (!strcmp(name, "--json"))
        json_path = value;
      else
        die("'%s' is no option: see the top of bench/gpu/collectives.c", name);
    }
  }
  if (options.init && !rounds_said) rounds = 3;
  if (options.recorder && !rounds_said) rounds = 31;
  if (rounds < 1 || rounds > 101) die("--rounds %d: 1 to 101", rounds);
  find_ranks(gpus);
  defaults(only);
}
