/**
 * Whose files a host's shell starts: root's and its own user's, and nobody else may write to them or to a directory above them. Statements for
 * scripts of one line, as in keep-copy.ts.
 *
 * A group may write where it is the user's private one or root's, as umask 002 has it. A directory with the sticky bit (/tmp) is
 * trusted above the installation: what the user has in it nobody else can replace. Where a user namespace has no root, root's files look like
 * anybody's, and are taken for root's.
 */

/** Patterns of an installation's files that are executed, or that determine what is. npm puts our Node beside ncclrun, too. */
const executed =
  'package.json bin bin/* dist dist/identity dist/bundle dist/bundle/* build build/*.node build/*.so.2 build/ncclrun-*';
const holders = ['', '/../..', '/../../..'].map((up) => `"$PWD"${up}/node_modules`);
const nodes = holders.map((holder) => `${holder}/node-linux-*/bin/node`);
const aboveNodes = ['', '/node-linux-*', '/node-linux-*/bin'];
const files = [
  ...executed.split(' ').map((pattern) => `"$PWD"/${pattern}`),
  ...holders.flatMap((holder) => aboveNodes.map((part) => `${holder}${part}`)),
  ...nodes,
];

/**
 * n_trusts DIRECTORY: puts the directory's path without symbolic links into n_real, or a sentence into n_distrust.
 * n_trusts DIRECTORY all: with all that is executed of an installation, be it the PATH's node.
 * n_trusts_place DIRECTORY: as far as it exists. n_uid: the user.
 *
 * No sentence has 20 letters in a row in common with this text: without-script.ts removes parts of the script that shells repeat in their messages.
 *
 * The usual case takes one process, find: a shell that parses the output of ls for sixty files takes 5 ms.
 */
export const TRUST = `
  n_uid= n_distrust=;
  while read -r n_word n_a n_b n_rest; do [ "$n_word" = Uid: ] && n_uid=$n_b && break; done 2>/dev/null </proc/self/status;
  [ -n "$n_uid" ] || n_uid=$(id -u);

  # USER GROUP: the group is that user's private one, as control/accounts.ts has it.
  n_is_group_of() {
    n_user= n_found=;
    while IFS=: read -r n_name n_a n_id n_gid n_rest; do
      [ "$n_gid" = "$2" ] || continue;
      [ "$n_id" = "$1" ] && [ -z "$n_user" ] || return 1;
      n_user=$n_name;
    done </etc/passwd;
    [ -n "$n_user" ] || return 1;
    while IFS=: read -r n_name n_a n_gid n_members; do
      [ "$n_gid" = "$2" ] || continue;
      [ "$n_name" = "$n_user" ] && [ -z "$n_found" ] || return 1;
      case $n_members in ""|"$n_name") n_found=1 ;; *) return 1 ;; esac;
    done </etc/group;
    [ -n "$n_found" ];
  };
  n_is_owner() {
    case $1 in 0|"$n_uid") return ;; 65534) ;; *) return 1 ;; esac;
    while read -r n_inside n_a; do [ "$n_inside" = 0 ] && return 1; done </proc/self/uid_map;
    return 0;
  };

  # Of COUNT lines of ls, the first that is not to be trusted.
  n_judge() {
    n_left=$1;
    while read -r n_mode n_a n_owner n_group n_a n_a n_a n_a n_path; do
      n_left=$((n_left-1));
      n_is_owner "$n_owner" || { echo "$n_path belongs to user id $n_owner"; return; };
      case $n_mode in
        l*) continue ;;
        d????????[tT]*) case $n_path in "$n_inner"|"$n_inner"/*) ;; *) continue ;; esac ;;
      esac;
      case $n_mode in
        ????????w*) echo "others may write to $n_path (mode $n_mode)"; return ;;
        ?????w*)
          { n_is_group_of "$n_uid" "$n_group" || n_is_group_of 0 "$n_group"; } && continue;
          echo "group id $n_group may write to $n_path (mode $n_mode)";
          return ;;
      esac;
    done;
    [ "$n_left" = 0 ] || echo "$PWD cannot be examined";
  };

  # DIRECTORY all, DIRECTORY above (it may be sticky) or DIRECTORY FILE: the path, after =, or what is wrong. For a shell of its own.
  n_examine() {
    CDPATH= cd -P "$1" 2>/dev/null || { echo "$1 cannot be entered"; exit; };
    n_from=$1 n_inner=$PWD;
    shift;
    if [ "$*" = all ]; then
      n_path=;
      for n_node in ${nodes.join(' ')}; do [ -x "$n_node" ] && break; done;
      [ -x "$n_node" ] || n_path=$(command -v node);
      set -- ${files.join(' ')} \${n_path:+"$n_path"};
    fi;
    if [ "$*" = above ]; then n_inner=-; shift; fi;
    n_count=$#;
    for n_path; do
      if [ -L "$n_path" ] && n_target=$(readlink -f "$n_path"); then
        set -- "$@" "$n_path";
        if [ -d "$n_target" ]; then n_found=$(n_examine "$n_target"); else n_found=$(n_examine "\${n_target%/*}" "$n_target"); fi;
        case $n_found in =*) ;; *) echo "$n_found"; exit ;; esac;
      elif [ -e "$n_path" ]; then
        set -- "$@" "$n_path";
      fi;
    done;
    shift "$n_count";
    for n_path in "$n_from" "$PWD"; do
      while [ -n "$n_path" ]; do
        set -- "$n_path" "$@";
        case $n_path in */*) n_path=\${n_path%/*} ;; *) n_path= ;; esac;
      done;
      [ "$n_from" = "$PWD" ] && break;
    done;
    set -- / "$@";
    n_odd=$(find "$@" -prune "(" "(" -user 0 -o -user "$n_uid" ")" "(" -type l -o "(" -perm -020 -o -perm -002 ")" -print -o -prune ")" -o -print ")" 2>&1) && [ -z "$n_odd" ] ||
      n_odd=$(LC_ALL=C TIME_STYLE=locale QUOTING_STYLE=literal ls -ldn "$@" 2>/dev/null | n_judge $#);
    if [ -z "$n_odd" ]; then echo "=$PWD"; else echo "$n_odd"; fi;
  };
  n_trusts() {
    n_found=$(n_examine "$@");
    # A signal has ended it, and is meant for us as well.
    [ -n "$n_found" ] || exit "\${n_interrupted:-125}";
    case $n_found in =*) n_real=\${n_found#=}; return ;; esac;
    case $n_distrust in *"$n_found"*) ;; *) n_distrust="\${n_distrust:+$n_distrust; }did not use $1: $n_found" ;; esac;
    return 1;
  };
  n_trusts_place() {
    [ -d "$1" ] && { n_trusts "$1"; return; };
    n_path=$1;
    until [ -d "$n_path" ]; do case $n_path in */?*) n_path=\${n_path%/*} ;; *) n_path=. ;; esac; [ -n "$n_path" ] || n_path=/; done;
    n_trusts "$n_path" above;
  };`;
