/* Makes a directory in the working directory that is hard to remove.
 *
 *     deep LEVELS      so many directories, each within the other
 *     deep locked      one that its owner may neither read nor enter, with a file in it
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  if (strcmp(argv[1], "locked") == 0)
    return mkdir("locked", 0700) == 0 && open("locked/file", O_CREAT | O_WRONLY, 0600) >= 0 && chmod("locked", 0) == 0
               ? 0
               : 3;
  for (long level = atol(argv[1]); level > 0; level--) {
    if (mkdir("d", 0700) != 0 || chdir("d") != 0) return 3;
  }
  return 0;
}
