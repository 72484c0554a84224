# The part of the reader for a host without python3 (`far_shell.sh`) that tells of directories and patterns.
list_part() { # number paths...
  number=$1
  shift
  stats=$(stat -L -c "%f %d %i %s $mtime" -- "$@" 2>/dev/null)
  packet L "$number" "$links
$stats

$names"
}

list() { # number path
  number=$1
  folder=$2
  place=$(stat -L -c '%d %i' -- "$folder" 2>/dev/null)
  if [ -z "$place" ]; then
    packet M "$number" "$(trouble "$folder") 0 0"
    return
  fi
  if [ ! -d "$folder" ]; then
    packet M "$number" "20 $place"
    return
  fi
  if [ ! -r "$folder" ] || [ ! -x "$folder" ]; then
    packet M "$number" "13 $place"
    return
  fi
  links=
  names=
  set --
  set +f
  for child in "$folder"/*; do
    if [ ! -e "$child" ]; then continue; fi
    if [ -L "$child" ]; then links="${links}1"; else links="${links}0"; fi
    if [ -n "$names" ]; then names="$names/${child##*/}"; else names=${child##*/}; fi
    set -- "$@" "$child"
    if [ $# -ge 200 ]; then
      list_part "$number" "$@"
      links=
      names=
      set --
    fi
  done
  set -f
  if [ $# -gt 0 ]; then list_part "$number" "$@"; fi
  packet M "$number" "0 $place"
}

matches() { # number pattern: pathname expansion and nothing else
  IFS=
  set +f
  count=0
  for match in $2; do
    if [ -e "$match" ]; then packet B "$1" "$match"; fi
    count=$((count + 1))
    if [ "$count" -gt 10000 ]; then break; fi
  done
  set -f
  IFS=' '
  packet b "$1" 0
}

beside() { # number path: the paths that begin with it
  set +f
  for match in "$2"*; do
    if [ -e "$match" ]; then packet B "$1" "$match"; fi
  done
  set -f
  packet b "$1" 0
}
