# The reader for a host without python3: POSIX sh, and stat, head, tail, dd, cat of coreutils (or busybox). It does what it
# is told, a line at a time, and sends packets as `frame` and `far_python` describe them. It only reads files, writes none,
# and ends when its stdin ends, or when it has heard nothing for a minute (a background sleep ends it).
#
#   w FILE PATH      t NUMBER          stat all files: "T NUMBER lines of FILE stat, or FILE errno", or "="
#   u FILE           p NUMBER          h NUMBER "seconds"
#   f NUMBER                           from now on "T 0 ..." comes unasked: F NUMBER "1" where tail tells of growth, then
#                                      "FILE MOUNT" for each file on a mount that may hang; H 0 "MOUNT" when that answers
#   d NUMBER FILE OFFSET LENGTH        P NUMBER bytes (zeros where the file shrank meanwhile), k NUMBER "stat" or "errno"
#   k NUMBER PATH OFFSET LENGTH        K NUMBER stat newline bytes, then k as above
#   l NUMBER PATH    b NUMBER PATTERN  x NUMBER SECONDS WORD...
#   n NUMBER PATH    B for each path that begins with it, then b
# Unasked, about a mount that keeps questions waiting: Q 0 "5 MOUNT"; Q 0 "0 MOUNT" when it answers.
#
# Two shells: `relay` passes commands on to `loop` through a pipe, into which those who watch files in the background
# write too: "!" (tail saw something), "?" (tail has ended), "g FILE STAT" and "H MOUNT" (from a mount that may hang),
# "q NUMBER MOUNT" and "v NUMBER MOUNT" (`far_probe`).
IFS=' '
newline='
'
set -f
files=
known=
here=
missing=
words=
points=
beats=0
guard=
helpers=
mtime=%Y000000000
case $(stat -c %.9Y / 2>/dev/null) in
*[0-9].[0-9]*) mtime=%.9Y ;; # GNU: to the nanosecond
esac
form="%d %i %s $mtime %f"
seeks= # whether dd can begin anywhere
counts= # and says how many bytes there were
case $(printf abcd | dd iflag=skip_bytes,count_bytes,fullblock skip=1 count=2 bs=8 2>&1) in
bc*"2 byte"*) seeks=1 counts=1 ;;
bc*) seeks=1 ;;
esac
follows=
case $(tail --version </dev/null 2>/dev/null) in
*coreutils*) follows=1 ;;
esac

packet() { # kind number payload
  printf '%s %08x %08x\n%s' "$1" "$2" "${#3}" "$3"
}

plain() { # undoes \0ooo; the dot keeps line ends at the end
  plain=$(printf '%b.' "$1")
  plain=${plain%.}
}

look() {
  stat -L -c "$form" "$1" 2>/dev/null
}

reason() { # an errno for what a program said of a file; 11 when there were fewer bytes than expected
  case $1 in
  *"No such file"*) echo 2 ;;
  *"Permission denied"*) echo 13 ;;
  *"Input/output error"* | *"I/O error"*) echo 5 ;;
  *"Stale file handle"*) echo 116 ;;
  *"Transport endpoint"* | *"Socket not connected"*) echo 107 ;;
  *"Not a directory"*) echo 20 ;;
  *"evels of symbolic links"* | *"Symbolic link loop"*) echo 40 ;;
  *"ame too long"*) echo 36 ;;
  *) echo 11 ;;
  esac
}

trouble() { # path errno: why a path cannot be read; the errno given, or 5, where nothing is in the way of it
  why=$(stat -L -- "$1" 2>&1 >/dev/null)
  if [ -n "$why" ]; then
    reason "$why"
  elif [ ! -e "$1" ]; then
    echo 2
  elif [ ! -r "$1" ]; then
    echo 13
  else
    echo "${2:-5}"
  fi
}

find_new() { # forgets `known` when a file is there that was not
  for file in $missing; do
    eval "path=\$path_$file"
    if [ -e "$path" ]; then
      known=
      return
    fi
  done
}

sort_out() { # sets `here` and `missing`; `words`: the paths of the former, for eval
  here=
  missing=
  words=
  gone=
  for file in $files; do
    eval "path=\$path_$file mount=\$mount_$file"
    if [ -n "$mount" ]; then continue; fi
    if [ -e "$path" ]; then
      here="$here $file"
      words="$words \"\$path_$file\""
    else
      missing="$missing $file"
      eval "old=\$told_$file told_$file=gone"
      if [ "$old" != gone ]; then gone="$gone$file $(trouble "$path")$newline"; fi
    fi
  done
  known=1
}

tell() { # number paths: what is new of them; forgets `known` when one of them is not there
  number=$1
  shift
  count=$#
  now=
  if [ "$count" -gt 0 ]; then
    now=$(stat -L -c "$form" "$@" 2>/dev/null) || known=
  fi
  if [ "$now" = "$last" ] && [ -z "$gone" ] && [ -n "$known" ]; then
    packet T "$number" =
    return
  fi
  IFS=$newline
  set -- $now
  IFS=' '
  if [ $# -ne "$count" ]; then # one went away just then
    known=
    return
  fi
  last=$now
  told=$gone
  gone=
  for file in $here; do
    eval "old=\$told_$file"
    if [ "$1" != "$old" ]; then
      eval "told_$file=\$1"
      told="$told$file $1$newline"
    fi
    shift
  done
  known=1
  packet T "$number" "${told:-=}"
}

pour() { # path offset count: so many bytes, with zeros where the file has no more; sets `got` to how many were there
  got=$3
  said=
  if [ "$3" -eq 0 ]; then return; fi
  if [ -n "$counts" ]; then
    said=$(dd if="$1" bs=1048576 skip="$2" count="$3" iflag=skip_bytes,count_bytes,fullblock 2>&1 >&3)
    case $said in
    *"$newline$3 byte"*) return ;;
    *records\ out"$newline"*)
      got=${said##*records out"$newline"}
      got=${got%% *}
      ;;
    *) got=0 ;;
    esac
    head -c $(($3 - got)) /dev/zero
  else
    {
      if [ -n "$seeks" ]; then
        dd if="$1" bs=1048576 skip="$2" count="$3" iflag=skip_bytes,count_bytes,fullblock
      else
        tail -c +$(($2 + 1)) -- "$1" | head -c "$3"
      fi
      cat /dev/zero
    } 2>/dev/null | head -c "$3"
  fi
}

data() { # number file offset count: of a file that is watched
  eval "path=\$path_$2"
  printf 'P %08x %08x\n' "$1" "$4"
  if [ -f "$path" ] && [ -r "$path" ]; then pour "$path" "$3" "$4"; else got=-1 && head -c "$4" /dev/zero; fi
  status=
  if [ "$got" -eq "$4" ]; then status=$(stat -L -c "$form" "$path" 2>/dev/null); fi
  if [ -n "$status" ]; then
    packet k "$1" "$status"
  elif [ "$got" -eq "$4" ]; then # a stat that was killed is no reason
    packet k "$1" "$(trouble "$path" 11)"
  elif [ "$got" -ge 0 ] && [ -e "$path" ]; then
    packet k "$1" "$(reason "$said")"
  else
    packet k "$1" "$(trouble "$path")"
  fi
}

part() { # number path offset length
  status=$(look "$2")
  if [ -z "$status" ]; then
    packet K "$1" "$(trouble "$2" 11)"
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
  pour "$2" "$at" "$count"
  if [ "$got" -eq "$count" ]; then
    status=$(look "$2")
    packet k "$1" "${status:-$(trouble "$2" 11)}"
  else
    packet k "$1" "$(reason "$said")"
  fi
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

loop() {
  exec 3>&1
  last=none
  gone=
  answered=
  silent=
  set --
  command=
  while before=$command && read -r command number rest; do
    case $command in
    w)
      if [ "$before" != w ]; then find_mounts; fi
      plain "$rest"
      mount_of "$plain"
      eval "path_$number=\$plain mount_$number=\$mount told_$number=none"
      files="$files $number"
      known=
      last=none
      ;;
    u)
      kept=
      for file in $files; do
        if [ "$file" != "$number" ]; then kept="$kept $file"; fi
      done
      files=$kept
      known=
      last=none
      ;;
    t | '!')
      find_new
      for _ in 1 2; do
        if [ -z "$known" ]; then # with many files, making the words for stat takes longer than all the rest
          sort_out
          eval "set -- $words"
        fi
        tell "${number:-0}" "$@"
        if [ -n "$known" ]; then break; fi
      done
      if [ -z "$known" ]; then packet T "${number:-0}" =; fi
      ;;
    g) packet T 0 "$number${rest:+ }$rest$newline" ;;
    H) packet H 0 "$number${rest:+ }$rest" ;;
    '?') packet F 0 0 ;;
    q)
      case " $answered " in
      *" $number "*) ;;
      *)
        silent="$silent $number"
        packet Q 0 "5 $rest"
        ;;
      esac
      ;;
    v)
      if [ "${#answered}" -gt 500 ]; then answered=; fi
      answered="$answered $number"
      case " $silent " in
      *" $number "*) packet Q 0 "0 $rest" ;;
      esac
      ;;
    f)
      told=${follows:-0}
      find_mounts
      known=
      for file in $files; do
        if [ -n "$points" ]; then
          eval "mount_of \"\$path_$file\""
          eval "mount_$file=\$mount"
        else
          eval "mount_$file= mount="
        fi
        if [ -n "$mount" ]; then told="$told$newline$file $mount"; fi
      done
      packet F "$number" "$told"
      ;;
    p) packet h "$number" "${rest:+$(date +%s)}" ;;
    d) data "$number" $rest ;;
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
}

relay | loop
exit 0
