/* Writes BYTES of numbered lines of 100 bytes. Usage: lines_write BYTES; the rank comes from RANK or a peer's variable.
 */
#include <stdlib.h>
#include <unistd.h>

#include "numbered_line.h"

enum { kLinesPerWrite = 600 };

static const char* rank_name(void) {
  static const char* const names[] = {"RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK"};
  for (int i = 0; i < 3; i++) {
    if (getenv(names[i]) != NULL) return getenv(names[i]);
  }
  return "0";
}

int main(int argc, char** argv) {
  long lines = (argc > 1 ? atol(argv[1]) : 0) / kLine;
  char line[kLine];
  numbered_line_first(line, atoi(rank_name()));
  static char buffer[kLine * kLinesPerWrite];
  for (long written = 0; written < lines;) {
    int used = 0;
    for (; written < lines && used < (int)sizeof buffer; written++, used += kLine) {
      memcpy(buffer + used, line, kLine);
      numbered_line_next(line);
    }
    for (int sent = 0; sent < used;) {
      ssize_t n = write(STDOUT_FILENO, buffer + sent, used - sent);
      if (n <= 0) return 1;
      sent += (int)n;
    }
  }
  return 0;
}
