/* Writes BYTES of numbered lines of 100 bytes. Usage: lines_write BYTES; the rank comes from RANK or a peer's variable.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { kLine = 100, kLinesPerWrite = 600 };

static const char* rank_name(void) {
  static const char* const names[] = {"RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK"};
  for (int i = 0; i < 3; i++) {
    if (getenv(names[i]) != NULL) return getenv(names[i]);
  }
  return "0";
}

int main(int argc, char** argv) {
  long lines = (argc > 1 ? atol(argv[1]) : 0) / kLine;
  int rank = atoi(rank_name());
  static char buffer[kLine * kLinesPerWrite + 1];
  for (long line = 0; line < lines;) {
    int used = 0;
    for (; line < lines && used < kLine * kLinesPerWrite; line++, used += kLine) {
      int head = sprintf(buffer + used, "%03d %012ld ", rank, line);
      memset(buffer + used + head, 'a' + (int)(line % 26), kLine - head - 1);
      buffer[used + kLine - 1] = '\n';
    }
    for (int sent = 0; sent < used;) {
      ssize_t n = write(STDOUT_FILENO, buffer + sent, used - sent);
      if (n <= 0) return 1;
      sent += (int)n;
    }
  }
  return 0;
}
