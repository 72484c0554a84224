# The part of the reader for a host without python3 (`far_shell.sh`) that keeps it from waiting: a command about a file
# system that may hang is passed on once that one answers. It is asked in the background; then some commands pass without.
probed=
places=0
probes=0
LINES_HELD=20

probers() { # the processes that wait for a mount
  place=$places
  while [ "$place" -gt 0 ]; do
    eval "echo \$waiting_$place"
    place=$((place - 1))
  done
}

probe() { # mount number: says "v NUMBER MOUNT" once it answers, before that "q NUMBER MOUNT" when it takes long
  (
    sleep 5
    echo "q $2 $1"
  ) &
  sleeper=$!
  stat -L -- "${1%/}/." >/dev/null
  kill $sleeper
  echo "v $2 $1"
}

place_of() { # mount: sets `place`, a number that stands for it from now on
  place=0
  IFS=$newline
  for each in $probed; do
    place=$((place + 1))
    if [ "$each" = "$1" ]; then
      IFS=' '
      return
    fi
  done
  IFS=' '
  probed="$probed$1$newline"
  place=$((place + 1))
  places=$place
  eval "good_$place=0 prober_$place= held_$place=0 waiting_$place="
}

expire() { # that a mount has answered tells nothing any more
  place=$places
  while [ "$place" -gt 0 ]; do
    eval "good_$place=0"
    place=$((place - 1))
  done
}

answers() { # mount: whether it has answered lately, or does soon
  place_of "$1"
  eval "good=\$good_$place prober=\$prober_$place"
  if [ "$good" -gt 0 ]; then
    eval "good_$place=$((good - 1))"
    return 0
  fi
  tries=1
  if [ -z "$prober" ]; then
    probes=$((probes + 1))
    probe "$1" "$probes" 2>/dev/null &
    prober=$!
    eval "prober_$place=$prober waiting_$place=$prober"
    tries=20
  fi
  while :; do
    jobs >/dev/null 2>&1 # has the shell notice who has ended
    if ! kill -0 "$prober" 2>/dev/null; then
      eval "prober_$place= good_$place=50 held_$place=0 waiting_$place="
      return 0
    fi
    tries=$((tries - 1))
    if [ "$tries" -le 0 ]; then return 1; fi
    sleep 0.01 2>/dev/null || sleep 1
  done
}

concern() { # command path: sets `concerned`, the mounts that may hang and that it would wait for
  below=$2
  if [ "$1" = b ]; then
    below=${2%%[*?[]*}
    below=${below%/*}/
  fi
  mount_of "$below"
  concerned=$mount
  case $1 in
  [lb]) below=$whole ;; # what lies in a directory is looked at too
  *) return ;;
  esac
  if [ -n "$mount" ]; then return; fi
  IFS=$newline
  for point in $points; do
    case $1$point in
    l"$below"/*/*) ;;
    ?"$below"/*) concerned="$concerned$newline$point" ;;
    esac
  done
  IFS=' '
  set +f
  set -- "$below"/*
  set -f
  for child in "$@"; do # and where the links in it lead to; a mount itself is not touched
    under_mount "$child"
    if [ -z "$mount" ] && [ -L "$child" ]; then
      mount_of "$child"
      if [ -n "$mount" ]; then concerned="$concerned$newline$mount"; fi
    fi
  done
}

pass_on() { # line: a command that looks at files; it waits in the background where they may not answer
  command=${1%% *}
  rest=${1#* }
  rest=${rest#* }
  plain "${rest%% *}"
  concern "$command" "$plain"
  IFS=$newline
  for mount in $concerned; do
    IFS=' '
    if ! answers "$mount"; then
      eval "held=\$held_$place held_$place=\$((held_$place + 1))"
      if [ "$held" -lt "$LINES_HELD" ] && [ "${#1}" -le 4000 ]; then
        {
          stat -L -- "${mount%/}/." >/dev/null
          printf '%s\n' "$1"
        } 2>/dev/null &
        eval "waiting_$place=\"\$waiting_$place $!\""
      fi
      return
    fi
  done
  IFS=' '
  printf '%s\n' "$1"
}
