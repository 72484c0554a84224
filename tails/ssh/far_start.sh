# Chooses what reads here: python3 (3.5 or newer) when it is there, else this shell. Then reads that program from stdin.
side=shell
for python in python3 /usr/libexec/platform-python; do
  if command -v "$python" >/dev/null 2>&1 &&
    "$python" -I -S -B -c 'import sys, select; sys.exit(sys.version_info < (3, 5))' </dev/null >/dev/null 2>&1; then
    side=python
    break
  fi
done
echo "trainmon-ready $nonce $side"
read -r size
if [ "$side" = python ]; then
  exec "$python" -I -S -B -c '
import os, sys
size, text = int(sys.argv[1]), b""
while len(text) < size:
    part = os.read(0, size - len(text))
    if not part:
        sys.exit(1)
    text += part
exec(compile(text, "trainmon-reader", "exec"))' "$size"
fi
eval "$(dd bs=1 count="$size" 2>/dev/null)"
