# The reader for a host without python3: POSIX sh, and stat, head, tail, cat of coreutils (or busybox). It does what it is
# told, a line at a time, and sends packets as `frame` and `far_python` describe them. It only reads files, writes none,
# and ends when its stdin ends, or when it has heard nothing for a minute (a background sleep ends it).
#
#   w FILE PATH      t NUMBER          stat all files: "T NUMBER files newline stats", or "=" when nothing changed
#   u FILE           p NUMBER          h NUMBER "seconds"
#   k NUMBER PATH OFFSET LENGTH        K NUMBER stat newline bytes (zeros where the file shrank meanwhile), k NUMBER stat after
#   l NUMBER PATH    b NUMBER PATTERN  x NUMBER SECONDS WORD...
#   n NUMBER PATH    B for each path that begins with it, then b
IFS=' '
set -f
files=
last=none
known=none
guard=
beats=0
mtime=%Y000000000
case $(stat -c %.9Y / 2>/dev/null) in
*[0-9].[0-9]*) mtime=%.9Y ;; # GNU: to the nanosecond
esac

packet() { # kind number payload
  printf '%s %08x %08x\n%s' "$1" "$2" "${#3}" "$3"
}

plain() { # undoes \0ooo; the dot keeps line ends at the end
  plain=$(printf '%b.' "$1")
  plain=${plain%.}
}

look() {
  stat -L -c "%d %i %s $mtime %f" "$1" 2>/dev/null
}

trouble() { # an errno for a path that cannot be read
  if [ ! -e "$1" ]; then echo 2; elif [ ! -r "$1" ]; then echo 13; else echo 5; fi
}

watch_over() {
  if [ -n "$guard" ]; then kill "$guard" 2>/dev/null; fi
  (
    sleep 60 &
    sleeper=$!
    trap 'kill $sleeper; exit 0' TERM
    wait $sleeper
    kill -9 $$
  ) </dev/null >/dev/null 2>&1 &
  guard=$!
}

present() { # sets `here`: those of the files that are there
  here=
  for file in $files; do
    eval "path=\$path_$file"
    if [ -f "$path" ]; then
      if [ -r "$path" ]; then true <"$path"; fi # opening is what refreshes attributes over NFS
      here="$here $file"
    elif [ -e "$path" ]; then
      here="$here $file"
    fi
  done 2>/dev/null
}

tell() { # paths
  now=
  if [ $# -gt 0 ]; then now=$(stat -L -c "%d %i %s $mtime %f" "$@" 2>/dev/null); fi
  now="$here
$now"
  if [ "$now" = "$last" ]; then packet T "$number" =; else packet T "$number" "$now"; fi
  last=$now
}

part() { # number path offset length
  status=$(look "$2")
  if [ -z "$status" ]; then
    packet K "$1" "$(trouble "$2")"
    return
  fi
  if [ ! -f "$2" ]; then
    packet K "$1" "$status
"
    return
  fi
  if [ ! -r "$2" ]; then
    packet K "$1" 13
    return
  fi
  rest=${status#* }
  rest=${rest#* }
  size=${rest%% *}
  at=$3
  if [ "$at" -lt 0 ]; then at=$((size + at)); fi
  if [ "$at" -lt 0 ]; then at=0; fi
  count=$4
  if [ "$count" -gt 1048576 ]; then count=1048576; fi
  if [ $((at + count)) -gt "$size" ]; then count=$((size - at)); fi
  if [ "$count" -lt 0 ]; then count=0; fi
  printf 'K %08x %08x\n%s\n' "$1" $((${#status} + 1 + count)) "$status"
  if [ "$count" -gt 0 ]; then
    { tail -c +$((at + 1)) -- "$2" | head -c "$count"; cat /dev/zero; } 2>/dev/null | head -c "$count"
  fi
  packet k "$1" "$(look "$2")"
}

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
  here=$(stat -L -c '%d %i' -- "$folder" 2>/dev/null)
  if [ -z "$here" ]; then
    packet M "$number" "$(trouble "$folder") 0 0"
    return
  fi
  if [ ! -d "$folder" ]; then
    packet M "$number" "20 $here"
    return
  fi
  if [ ! -r "$folder" ] || [ ! -x "$folder" ]; then
    packet M "$number" "13 $here"
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
  packet M "$number" "0 $here"
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

run() { # number seconds escaped words...
  number=$1
  seconds=$2
  shift 2
  for coded in "$@"; do
    plain "$coded"
    set -- "$@" "$plain"
    shift
  done
  case $1 in
  squeue | scontrol | sacct | sinfo) ;;
  *)
    packet R "$number" "126 0
"
    return
    ;;
  esac
  out=$(timeout "$seconds" "$@" 2>/dev/null </dev/null)
  code=$?
  packet R "$number" "$code ${#out}
$out"
}

watch_over
while read -r command number rest; do
  beats=$((beats + 1))
  if [ "$beats" -ge 20 ]; then
    beats=0
    watch_over
  fi
  case $command in
  w)
    plain "$rest"
    eval "path_$number=\$plain"
    files="$files $number"
    last=none
    known=none
    ;;
  u)
    kept=
    for file in $files; do
      if [ "$file" != "$number" ]; then kept="$kept $file"; fi
    done
    files=$kept
    last=none
    ;;
  t)
    present
    if [ "$here" != "$known" ]; then # with many files, making the words for stat takes longer than all the rest
      words=
      for file in $here; do words="$words \"\$path_$file\""; done
      eval "set -- $words"
      known=$here
    fi
    tell "$@"
    ;;
  p) packet h "$number" "$(date +%s)" ;;
  k)
    plain "${rest%% *}"
    rest=${rest#* }
    part "$number" "$plain" "${rest% *}" "${rest#* }"
    ;;
  l)
    plain "$rest"
    list "$number" "$plain"
    ;;
  b)
    plain "$rest"
    matches "$number" "$plain"
    ;;
  n)
    plain "$rest"
    beside "$number" "$plain"
    ;;
  x)
    run "$number" $rest
    ;;
  *) break ;;
  esac
done
kill "$guard" 2>/dev/null
exit 0
