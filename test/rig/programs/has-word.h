// Whether this process has a word among its arguments: what is preloaded into ncclrun comes into all that it starts.
#pragma once
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static int hasWord(const char* word) {
  char line[65536];
  const int file = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
  const ssize_t size = read(file, line, sizeof line);
  close(file);
  for (ssize_t at = 0; at < size; at += (ssize_t)strlen(line + at) + 1)
    if (strcmp(line + at, word) == 0) return 1;
  return 0;
}
