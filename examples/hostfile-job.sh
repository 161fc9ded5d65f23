#!/bin/sh
# A job script: hosts from a file, a copy of the output of each rank, and a result that the script reads.
#
#     examples/hostfile-job.sh [HOSTFILE]        (with ncclrun in the PATH)
set -eu
here=$(cd "$(dirname "$0")" && pwd)
hostfile=${1:-$here/hostfile}
result=$(mktemp)
trap 'rm -f "$result"' EXIT

# Where would the ranks go? This starts nothing.
ncclrun --hostfile "$hostfile" --dry-run "$here/hello.sh"

# One rank per slot. The variable goes to every rank, on other hosts too; lines begin with rank and host.
status=0
GREETING=welcome ncclrun --hostfile "$hostfile" -x GREETING --tag-output=host --timeout 60 --report "$result" \
  "$here/hello.sh" || status=$?

# The exit status is that of the rank to blame; the result says more.
reason=$(sed -n 's/.*"reason": *"\([^"]*\)".*/\1/p' "$result")
echo "the job ended with status $status ($reason)"
exit "$status"
