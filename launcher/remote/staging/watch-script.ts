/**
 * What a host's shell does so that nothing of a copy outlives the launcher, as statements for scripts of one line: a process beside the script that looks at it
 * every second, with what the system shows of any process. Names as in keep-copy.ts.
 *
 * While the script's processes make progress it sends `alive` to the launcher. If all of them wait for longer than a lease, for a lost launcher or
 * anything else, it kills them and removes the unpacked files; it does the same if the script itself was killed.
 */
import { StagingMessage } from './protocol.ts';

/** Seconds in which nothing of the script gets on: as the lease of an agent. */
const IDLE_SECONDS = 5;
/** Seconds in which a processor or a disk is busy for it, and nothing else can be seen to happen. */
const BUSY_SECONDS = 60;

/**
 * n_tree PID: the process and what it started, without ourselves (n_self), as n_found. A kernel without CONFIG_PROC_CHILDREN shows no children: then it is the process alone.
 * read fails at the end of a file without a newline, having read it.
 */
const TREE = `n_tree() {
    n_found=;
    set -- "$1";
    while [ "$#" -gt 0 ]; do
      n_pid=$1;
      shift;
      [ "$n_pid" = "$n_self" ] && continue;
      n_found="$n_found $n_pid";
      n_kids=;
      read -r n_kids <"/proc/$n_pid/task/$n_pid/children";
      set -- "$@" $n_kids;
    done;
  };`;

/**
 * n_look: n_seen is what can be seen to change, n_busy that a processor or a disk is at work for one of n_found. What a process has read is counted
 * (proc(5), io), or else its processor time; its name, in parentheses, may have blanks.
 */
const LOOK = `n_look() {
    n_seen=;
    n_busy=;
    for n_pid in $n_found; do
      n_read=;
      read -r n_word n_read <"/proc/$n_pid/io";
      n_line=;
      read -r n_line <"/proc/$n_pid/stat";
      set -- \${n_line##*) };
      case $1 in R|D) n_busy=yes ;; esac;
      n_seen="$n_seen $n_pid:$n_read:\${12}:\${13}";
    done;
    [ -r "/proc/$$/task/$$/children" ] || n_busy=yes;
  };`;

/** n_started NAME: the variable becomes the number of what runs in the background since just now. csh takes the mark itself for a piece of its history. */
const STARTED = `
  n_mark=$(printf "\\041");
  n_started() { eval "$1=\\$$n_mark"; };`;

/** n_wait: a second, which TERM cuts short, with the sleep. */
const WAIT = 'n_wait() { sleep 1 & n_started n_sleep; wait "$n_sleep"; };';

/** n_watch: in a process of its own, until it gets TERM. What it writes to descriptor 3 is for the launcher. */
const WATCH = `n_watch() {
    read -r n_self n_line </proc/self/stat;
    n_sleep=;
    trap "" HUP INT PIPE;
    trap "kill \\$n_sleep; exit 0" TERM;
    n_before=;
    n_idle=0;
    n_same=0;
    while [ "$n_idle" -lt ${IDLE_SECONDS} ] && [ "$n_same" -lt ${BUSY_SECONDS} ] && kill -0 "$$"; do
      n_tree "$$";
      n_look;
      n_same=$((n_same+1));
      n_idle=$((n_idle+1));
      [ "$n_seen" = "$n_before" ] || n_same=0;
      [ "$n_seen" = "$n_before" ] && [ -z "$n_busy" ] || n_idle=0;
      n_before=$n_seen;
      n_say ${StagingMessage.alive} 0 >&3;
      n_wait 3>&- 4>&-;
    done;
    echo "nothing of the copy got on for ${IDLE_SECONDS} s: it was ended" >&4;
    for n_pid in $n_found; do [ "$n_pid" = "$$" ] || kill -9 "$n_pid"; done;
    kill -TERM "$$" && kill -CONT "$$" && n_wait 3>&- 4>&-;
    kill -9 "$$";
    n_in_places n_forget;
    exit 0;
  };
  n_forget() { rm -rf "$1/.new-$(uname -n)-$$"; return 1; };`;

/** n_guard: begins the watch, which ends with the script; n_relieve: ends it. They need n_say, n_in_places, and descriptor 3 for the launcher. n_started serves others, too. */
export const GUARD = `
  ${TREE}
  ${LOOK}
  ${STARTED}
  ${WAIT}
  ${WATCH}
  n_relieve() { { kill "$n_watcher" && wait "$n_watcher"; } 2>/dev/null; };
  n_guard() { n_watch 4>&2 </dev/null >/dev/null 2>&1 & n_started n_watcher; trap n_relieve EXIT; };`;

/** The same where there is no watch. */
export const NO_GUARD = 'n_relieve() { :; };';
