/* The line that both ends of the output figure know: "RRR NNNNNNNNNNNN xxx...x\n", the rank, the line's number and a
 * letter that changes with it. Counted up in place: what is measured is the way between the two, not their printf. */
#pragma once
#include <stdio.h>
#include <string.h>

enum { kLine = 100, kNumber = 4, kDigits = 12, kHead = kNumber + kDigits + 1 };

static void numbered_line_first(char line[kLine], int rank) {
  char head[kHead + 8];
  snprintf(head, sizeof head, "%03d %012d ", rank % 1000, 0);
  memcpy(line, head, kHead);
  memset(line + kHead, 'a', kLine - kHead - 1);
  line[kLine - 1] = '\n';
}

static void numbered_line_next(char line[kLine]) {
  char* digit = line + kNumber + kDigits - 1;
  for (; *digit == '9' && digit > line + kNumber; digit--) *digit = '0';
  ++*digit;
  char letter = line[kHead] == 'z' ? 'a' : (char)(line[kHead] + 1);
  memset(line + kHead, letter, kLine - kHead - 1);
}
