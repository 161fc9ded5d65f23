/* Reads what lines_write's ranks wrote, each line behind any prefix that ends in a space, and checks every byte: whole
 * lines, each rank's in order, none lost. Usage: lines_check RANKS BYTES-PER-RANK; says "ok LINES" or what is wrong,
 * and exits accordingly. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { kLine = 100, kMaxRanks = 1024 };
static long next_line[kMaxRanks];
static long total;

static void wrong(const char* what, const char* line, size_t length) {
  printf("wrong: %s in line %ld: %.*s\n", what, total, (int)length, line);
  exit(1);
}

/* One line without its newline. */
static void check(const char* line, size_t length) {
  if (length < kLine - 1) wrong("cut", line, length);
  const char* own = line + length - (kLine - 1);
  if (own != line && own[-1] != ' ') wrong("no prefix", line, length);
  int rank = atoi(own);
  long number = atol(own + 4);
  if (rank < 0 || rank >= kMaxRanks) wrong("rank", line, length);
  if (number != next_line[rank]) wrong("order", line, length);
  next_line[rank]++;
  char letter = 'a' + (char)(number % 26);
  for (int i = 17; i < kLine - 1; i++) {
    if (own[i] != letter) wrong("letters", line, length);
  }
  total++;
}

int main(int argc, char** argv) {
  int ranks = argc > 1 ? atoi(argv[1]) : 1;
  long lines = (argc > 2 ? atol(argv[2]) : 0) / kLine;
  static char buffer[1 << 20];
  size_t held = 0;
  for (ssize_t n; (n = read(STDIN_FILENO, buffer + held, sizeof buffer - held)) > 0;) {
    if (ranks == 0) continue;
    held += (size_t)n;
    char* line = buffer;
    for (char* newline; (newline = memchr(line, '\n', held - (size_t)(line - buffer))) != NULL; line = newline + 1) {
      check(line, (size_t)(newline - line));
    }
    held -= (size_t)(line - buffer);
    memmove(buffer, line, held);
  }
  if (held > 0) wrong("no newline at the end", buffer, held);
  for (int rank = 0; rank < ranks; rank++) {
    if (next_line[rank] != lines) {
      printf("wrong: rank %d has %ld of %ld lines\n", rank, next_line[rank], lines);
      return 1;
    }
  }
  printf("ok %ld\n", total);
  return 0;
}
