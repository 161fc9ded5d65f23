/* Reads what lines_write's ranks wrote, each line behind any prefix that ends in a space, and checks every byte: whole
 * lines, each rank's in order, none lost. Usage: lines_check RANKS BYTES-PER-RANK; says "ok LINES" or what is wrong,
 * and exits accordingly. With 0 ranks it only reads. */
#include <stdlib.h>
#include <unistd.h>

#include "numbered_line.h"

enum { kMaxRanks = 1000 };
static char expected[kMaxRanks][kLine];
static long seen[kMaxRanks];
static long total;

static void wrong(const char* what, const char* line, size_t length) {
  printf("wrong: %s in line %ld: %.*s\n", what, total, (int)length, line);
  exit(1);
}

/* One line with its newline. */
static void check(const char* line, size_t length) {
  if (length < kLine) wrong("cut", line, length);
  const char* own = line + length - kLine;
  if (own != line && own[-1] != ' ') wrong("no prefix", line, length);
  int rank = 0;
  for (int i = 0; i < 3; i++) {
    if (own[i] < '0' || own[i] > '9') wrong("rank", line, length);
    rank = rank * 10 + own[i] - '0';
  }
  if (memcmp(own, expected[rank], kLine) != 0) wrong("not the line that was next", line, length);
  numbered_line_next(expected[rank]);
  seen[rank]++;
  total++;
}

int main(int argc, char** argv) {
  int ranks = argc > 1 ? atoi(argv[1]) : 1;
  long lines = (argc > 2 ? atol(argv[2]) : 0) / kLine;
  for (int rank = 0; rank < kMaxRanks; rank++) numbered_line_first(expected[rank], rank);
  static char buffer[1 << 18];
  size_t held = 0;
  for (ssize_t n; (n = read(STDIN_FILENO, buffer + held, sizeof buffer - held)) > 0;) {
    if (ranks == 0) continue;
    held += (size_t)n;
    char* line = buffer;
    for (char* newline; (newline = memchr(line, '\n', held - (size_t)(line - buffer))) != NULL; line = newline + 1) {
      check(line, (size_t)(newline - line) + 1);
    }
    held -= (size_t)(line - buffer);
    memmove(buffer, line, held);
    if (held == sizeof buffer) wrong("no newline", buffer, 100);
  }
  if (held > 0) wrong("no newline at the end", buffer, held);
  for (int rank = 0; rank < ranks; rank++) {
    if (seen[rank] != lines) {
      printf("wrong: rank %d has %ld of %ld lines\n", rank, seen[rank], lines);
      return 1;
    }
  }
  printf("ok %ld\n", total);
  return 0;
}
