#include "report.h"

#include <stdarg.h>
#include <stdio.h>

const char* json_path;

static void json(const char* format, ...) __attribute__((format(printf, 1, 2)));
static void json(const char* format, ...) {
  if (rank != 0 || !json_path) return;
  FILE* file = fopen(json_path, "a"); /* each line at once: a run that is cut short keeps what it has */
  if (!file) die("cannot append to %s: %m", json_path);
  va_list list;
  va_start(list, format);
  vfprintf(file, format, list);
  va_end(list);
  fclose(file);
}

void report_head(void) {
  if (rank != 0) return;
  for (int n = 0; n < LIBRARIES; n++) {
    const Library* library = &libraries[n];
    if (!library->path) continue;
    printf("# %s: %s, version %d%s\n", library->name, library->path, library->versionCode,
           library->usable ? "" : ", cannot be used");
    json("{\"library\":\"%s\",\"path\":\"%s\",\"version\":%d,\"usable\":%s,\"ranks\":%d}\n", library->name,
         library->path, library->versionCode, library->usable ? "true" : "false", ranks);
  }
  printf("# %d ranks; us per operation of the slowest rank, median of %d rounds in turn\n", ranks, rounds);
}

void report_machine(void) {
  const Limits* limits = &shared->limits;
  if (rank != 0) return;
  printf("# an empty kernel: %.2f us, in a graph %.2f us; every GPU to the next: ", limits->launch[0],
         limits->launch[1]);
  if (limits->copies > 0)
    printf("copy engines %.1f GB/s, stores %.1f GB/s\n", limits->copies, limits->stores);
  else
    printf("n/a\n");
  printf("%-14s %11s %-12s %10s %10s %7s %9s %9s %9s %6s %s\n", "collective", "bytes", "mode", "theirs/us", "ours/us",
         "ratio", "theirs/GBs", "ours/GBs", "floor/us", "of top", "wrong, blocks (theirs, ours)");
  json(
      "{\"empty_kernel_us\":%.3f,\"empty_kernel_graph_us\":%.3f,\"copies_gbs\":%.2f,\"stores_gbs\":%.2f,\"ranks\":"
      "%d}\n",
      limits->launch[0], limits->launch[1], limits->copies, limits->stores, ranks);
  fflush(stdout);
}

/* GB/s over each GPU's link that this collective could reach; 0: not known. */
static double ceiling_of(int kind) {
  const Limits* limits = &shared->limits;
  const int reduces = kind == ALL_REDUCE || kind == REDUCE_SCATTER;
  return reduces || limits->stores > limits->copies ? limits->stores : limits->copies;
}

/* µs of the bytes at the ceiling, if it is known. */
static double bandwidth_floor(Case one) {
  const double ceiling = ceiling_of(one.kind);
  return ceiling > 0 ? (double)one.bytes * bus_factor(one.kind) / ceiling / 1e3 : 0;
}
static double launch_floor(Case one) { return shared->limits.launch[one.mode == GRAPH || one.mode == GRAPH_WINDOW]; }

static const char* number(char* text, size_t room, int is, double value, const char* format) {
  if (!is) return "n/a";
  snprintf(text, room, format, value); /* NOLINT: the formats are below */
  return text;
}

static void json_figure(const char* name, const Figure* figure, double bus) {
  if (!figure->measured) {
    json(",\"%s\":{\"why_not\":\"%s\",\"wrong\":%llu}", name, figure->why_not, figure->wrong);
    return;
  }
  json(",\"%s\":{\"us\":%.3f,\"least_us\":%.3f,\"most_us\":%.3f,\"first_rank_us\":%.3f,\"bus_gbs\":%.3f,\"wrong\":%llu",
       name, figure->median, figure->fastest, figure->slowest, figure->first_rank, bus, figure->wrong);
  if (figure->blocks >= 0) json(",\"blocks\":%d", figure->blocks);
  json("}");
}

void report_row(Case one, const Figure figures[LIBRARIES]) {
  char text[8][32];
  double bus[LIBRARIES];
  const double ceiling = ceiling_of(one.kind);
  const double launch = launch_floor(one), bandwidth = bandwidth_floor(one);
  const Figure *ours = &figures[OURS], *theirs = &figures[THEIRS];
  if (rank != 0) return;
  /* Why there are no windows stands above the rows. */
  if (one.mode >= EAGER_WINDOW && !ours->measured && !theirs->measured && !ours->tried && !theirs->tried) return;
  for (int n = 0; n < LIBRARIES; n++) {
    bus[n] = figures[n].measured ? (double)one.bytes * bus_factor(one.kind) / figures[n].median / 1e3 : 0;
  }
  const int both = ours->measured && theirs->measured;
  printf("%-14s %11zu %-12s %10s %10s %7s %9s %9s %9.2f %6s %llu %llu %3s %3s", kind_names[one.kind], one.bytes,
         mode_names[one.mode], number(text[0], 32, theirs->measured, theirs->median, "%.2f"),
         number(text[1], 32, ours->measured, ours->median, "%.2f"),
         number(text[2], 32, both, both ? ours->median / theirs->median : 0, "%.3f"),
         number(text[3], 32, theirs->measured, bus[THEIRS], "%.2f"),
         number(text[4], 32, ours->measured, bus[OURS], "%.2f"), launch > bandwidth ? launch : bandwidth,
         number(text[5], 32, ours->measured && ceiling > 0, ceiling > 0 ? bus[OURS] / ceiling : 0, "%.3f"),
         theirs->wrong, ours->wrong, number(text[6], 32, theirs->blocks >= 0, theirs->blocks, "%.0f"),
         number(text[7], 32, ours->blocks >= 0, ours->blocks, "%.0f"));
  for (int n = 0; n < LIBRARIES; n++) {
    if (libraries[n].path && !figures[n].measured) printf("  (%s: %s)", libraries[n].name, figures[n].why_not);
  }
  printf("%s\n", ours->wrong || theirs->wrong ? "  WRONG" : "");
  fflush(stdout);
  json("{\"collective\":\"%s\",\"bytes\":%zu,\"mode\":\"%s\",\"ranks\":%d,\"launch_floor_us\":%.3f",
       kind_names[one.kind], one.bytes, mode_names[one.mode], ranks, launch);
  if (ceiling > 0) json(",\"bandwidth_floor_us\":%.3f", bandwidth);
  json_figure("theirs", theirs, bus[THEIRS]);
  json_figure("ours", ours, bus[OURS]);
  json("}\n");
}

void report_lost(const char* how, const char* what) {
  if (rank != 0) return;
  printf("# %s: %s\n", how, what);
  fflush(stdout);
  json("{\"lost\":\"%s\",\"what\":\"%s\"}\n", how, what);
}

void report_init(int library, int round, double join, double first, double large, double leave) {
  if (rank != 0) return;
  printf("init %-7s %5d %12.1f %12.1f %12.1f %12.1f\n", libraries[library].name, round, join / 1e3, first / 1e3,
         large / 1e3, leave / 1e3);
  fflush(stdout);
  json(
      "{\"init\":\"%s\",\"round\":%d,\"join_us\":%.1f,\"first_us\":%.1f,\"large_us\":%.1f,\"leave_us\":%.1f,\"ranks\":%"
      "d}\n",
      libraries[library].name, round, join, first, large, leave, ranks);
}

void report_ratio(Case one, const Figure figures[LIBRARIES]) {
  const Figure* figure = &figures[OURS];
  if (figure->ratio <= 0) return;
  printf("%s of %zu bytes, %s: %s / %s %.4f, 95 %% interval %.4f to %.4f over %d pairs\n", kind_names[one.kind],
         one.bytes, mode_names[one.mode], libraries[OURS].name, libraries[THEIRS].name, figure->ratio,
         figure->ratio / figure->factor, figure->ratio * figure->factor, rounds);
}
