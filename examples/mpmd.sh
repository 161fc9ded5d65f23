#!/bin/sh
# Several programs in one job: a leader and its workers. Ranks go on counting from one program to the next, and each program
# has its own number of ranks, environment and working directory.
#
#     examples/mpmd.sh                           (with ncclrun in the PATH)
here=$(cd "$(dirname "$0")" && pwd)
exec ncclrun --tag-output -n 1 -x GREETING=lead "$here/hello.sh" : -n 2 -x GREETING=work "$here/hello.sh" : -n 1 "$here/hello.py"
