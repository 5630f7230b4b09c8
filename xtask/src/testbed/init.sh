#!/bin/busybox sh
# The first program of a testbed machine. Mounts what a server has mounted, loads the modules, runs the command, sends
# what came of it through the port "results", powers off. Records there: a line of words, and behind `file SIZE PATH`
# SIZE raw bytes. The command's two streams have ports of their own, so they arrive while it runs and even if it hangs.
export PATH=/bin:/sbin HOME=/root TERM=dumb
/bin/busybox --install -s /bin

mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
mkdir -p /dev/pts /dev/shm /tmp /run /root /var/lib
mount -t devpts devpts /dev/pts
mount -t tmpfs tmpfs /dev/shm
mount -t tmpfs tmpfs /tmp
mount -t tmpfs tmpfs /run
mount -t cgroup2 cgroup2 /sys/fs/cgroup
mount -t tracefs tracefs /sys/kernel/tracing
mount -t debugfs debugfs /sys/kernel/debug
mount -t bpf bpf /sys/fs/bpf
ln -s /proc/self/fd /dev/fd
ln -s fd/0 /dev/stdin
ln -s fd/1 /dev/stdout
ln -s fd/2 /dev/stderr
ip link set lo up

failed=/run/failed-modules
: >"$failed"
while read -r name parameters; do
  # shellcheck disable=SC2086 # parameters are words
  said=$(insmod "/testbed/modules/$name.ko" $parameters 2>&1) || echo "module $name: $said" >>"$failed"
done </testbed/modules.list

# Ports appear a moment after their driver is loaded.
port() {
  for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
    for named in /sys/class/virtio-ports/*/name; do
      if [ "$(cat "$named" 2>/dev/null)" = "$1" ]; then
        named=${named%/name}
        echo "/dev/${named##*/}"
        return
      fi
    done
    sleep 0.1
  done
  echo "testbed: no port $1" >/dev/kmsg
  poweroff -f
}
results=$(port results)
exec 3>"$results"
while read -r line; do echo "$line" >&3; done <"$failed"

# Pipes lie between command and ports, because a port can be opened once only and /dev/stderr opens again.
mkfifo /run/stdout.pipe /run/stderr.pipe
cat /run/stdout.pipe >"$(port stdout)" &
stdout_cat=$!
cat /run/stderr.pipe >"$(port stderr)" &
stderr_cat=$!

cd /root || exit
echo "boot $(cut -d' ' -f1 /proc/uptime)" >&3
sh /testbed/command </dev/null >/run/stdout.pipe 2>/run/stderr.pipe 3>&-
code=$?
echo "exit $code $(cut -d' ' -f1 /proc/uptime)" >&3

# A process the command left behind may hold the streams open for ever; what it still says is not waited for long.
for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
  kill -0 "$stdout_cat" 2>/dev/null || kill -0 "$stderr_cat" 2>/dev/null || break
  sleep 0.1
done

# Files of proc and sys do not know their size, so each is copied before it is measured.
send() {
  if cat "$1" >/run/copy 2>/dev/null; then
    echo "file $(wc -c </run/copy) $1" >&3
    cat /run/copy >&3
  else
    echo "missing $1" >&3
  fi
}
while read -r path; do
  if [ -d "$path" ]; then
    find "$path" -type f | while read -r inside; do send "$inside"; done
  else
    send "$path"
  fi
done </testbed/fetch.list
echo end >&3
exec 3>&-
poweroff -f
