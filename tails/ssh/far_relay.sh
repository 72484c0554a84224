# The first half of the reader for a host without python3 (`far_shell.sh`): what passes commands on, and what watches files
# in the background. What they write goes to the reader through one pipe, in lines that are short enough to stay whole.

find_mounts() { # sets `points`: where file systems are mounted that may hang
  points=
  while read -r _ _ _ _ point about; do
    case ${about##* - } in
    nfs* | lustre* | gpfs* | beegfs* | cifs* | smb* | ceph* | 9p* | afs* | panfs* | weka* | gluster* | virtiofs* | fuse* | orangefs* | pvfs*)
      case $point in
      *\\012* | *\\134*) point=${point%%\\*} ;; # a line end or a backslash in its name: up to there
      *\\*) plain "$point" && point=$plain ;;
      esac
      points="$points$point$newline"
      ;;
    esac
  done 2>/dev/null </proc/self/mountinfo
}

under_mount() { # path: sets `mount` to the file system that may hang and that it lies on, if any
  mount=
  IFS=$newline
  for point in $points; do
    case $1/ in
    "${point%/}"/*) mount=$point ;;
    esac
  done
  IFS=' '
}

mount_of() { # path: as `under_mount`, and sets `whole`: links followed up to that file system, where they would hang
  case $1 in
  /*) ahead=${1#/} ;;
  *) ahead=${PWD#/}/${1#./} ;;
  esac
  whole=
  mount=
  links_left=40
  if [ -z "$points" ]; then
    whole=/$ahead
    return
  fi
  while [ -n "$ahead" ]; do
    step=${ahead%%/*}
    case $ahead in
    */*) ahead=${ahead#*/} ;;
    *) ahead= ;;
    esac
    case $step in
    '' | .) continue ;;
    ..)
      whole=${whole%/*}
      continue
      ;;
    esac
    under_mount "$whole/$step"
    if [ -z "$mount" ] && [ "$links_left" -gt 0 ] && [ -L "$whole/$step" ]; then
      links_left=$((links_left - 1))
      leads=$(readlink -- "$whole/$step" 2>/dev/null && echo .)
      leads=${leads%"$newline".}
      case $leads in
      '') whole=$whole/$step ;;
      /*)
        whole=
        ahead=${leads#/}${ahead:+/$ahead}
        ;;
      *) ahead=$leads${ahead:+/$ahead} ;;
      esac
      continue
    fi
    whole=$whole/$step
    if [ -n "$mount" ]; then
      whole=$whole${ahead:+/$ahead}
      return
    fi
  done
}

notify() { # says "!" when one of the files may have grown; for those on mounts that cannot hang
  set --
  for file in $files; do
    eval "plain \"\$code_$file\""
    mount_of "$plain"
    # Nothing but regular files, and by their descriptors: tail would wait without end in opening a pipe.
    if [ -z "$mount" ] && [ -f "$plain" ]; then set -- "$@" "$plain"; fi
  done
  if [ $# -eq 0 ]; then
    echo '?'
    return
  fi
  me=$(exec sh -c 'echo $PPID')
  tail -q -n 0 -s 0.25 --pid="$me" -f -- "$@" </dev/null 2>&1 | while :; do
    case $(dd bs=65536 count=1 2>&1 >/dev/null) in
    0+0*) break ;;
    esac
    echo '!'
    sleep 0.05
  done
  echo '?'
}

attend() { # mount: says what changes in the files on it, and that it answers
  mine=
  for file in $files; do
    eval "plain \"\$code_$file\""
    mount_of "$plain"
    if [ "$mount" = "$1" ]; then
      eval "path_$file=\$plain told_$file=none"
      mine="$mine $file"
    fi
  done
  still=0
  while :; do
    for file in $mine; do
      eval "path=\$path_$file old=\$told_$file"
      now=gone
      if [ -f "$path" ] && [ -r "$path" ]; then true <"$path"; fi # opening is what refreshes attributes over NFS
      if [ -e "$path" ]; then now=$(look "$path"); fi
      if [ -n "$now" ] && [ "$now" != "$old" ]; then
        eval "told_$file=\$now"
        if [ "$now" = gone ]; then now=$(trouble "$path"); fi
        echo "g $file $now"
        still=0
      fi
    done 2>/dev/null
    echo "H $1"
    still=$((still + 1))
    if [ "$still" -ge 40 ]; then sleep 2; else sleep 0.25 2>/dev/null || sleep 1; fi
  done
}

watch_over() {
  if [ -n "$guard" ]; then kill "$guard" 2>/dev/null; fi
  (
    sleep 60 &
    sleeper=$!
    trap 'kill $sleeper; exit 0' TERM
    wait $sleeper
    kill $helpers "$relay"
    kill -9 $$
  ) </dev/null >/dev/null 2>&1 &
  guard=$!
}

leave() {
  kill $guard $helpers $(probers) 2>/dev/null
  helpers=
}

help() { # starts what watches in the background
  if [ -n "$helpers" ]; then kill $helpers 2>/dev/null; fi
  helpers=
  mounts=
  find_mounts
  if [ -n "$points" ]; then
    for file in $files; do
      eval "plain \"\$code_$file\""
      mount_of "$plain"
      case "$newline$mounts" in
      *"$newline$mount$newline"*) ;;
      *) if [ -n "$mount" ]; then mounts="$mounts$mount$newline"; fi ;;
      esac
    done
  fi
  IFS=$newline
  for mount in $mounts; do
    IFS=' '
    attend "$mount" &
    helpers="$helpers $!"
  done
  IFS=' '
  if [ -n "$follows" ]; then
    notify &
    helpers="$helpers $!"
  fi
  watch_over # which ends them too
}

relay() {
  relay=$(exec sh -c 'echo $PPID')
  watch_over
  before=
  while IFS= read -r line; do
    beats=$((beats + 1))
    if [ "$beats" -ge 20 ]; then
      beats=0
      watch_over
    fi
    case $line in
    w*)
      rest=${line#w }
      eval "code_${rest%% *}=\${rest#* }"
      files="$files ${rest%% *}"
      ;;
    u*)
      kept=
      for file in $files; do
        if [ "$file" != "${line#u }" ]; then kept="$kept $file"; fi
      done
      files=$kept
      ;;
    f*) help ;;
    [lbnk]*)
      case $before in
      [lbnk]*) ;;
      *)
        find_mounts
        expire
        ;;
      esac
      before=$line
      if [ -n "$points" ]; then
        pass_on "$line"
        continue
      fi
      ;;
    esac
    before=$line
    # What is longer than a pipe takes in one piece must not be cut by what others write.
    if [ "${#line}" -gt 4000 ]; then
      kill $helpers 2>/dev/null
      helpers=
    fi
    printf '%s\n' "$line"
  done
  leave
}
