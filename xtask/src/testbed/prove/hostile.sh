C3='--set idle.state.C3=off'
MANY='--set freq.governor=conservative --set freq.tunable.conservative.up_threshold=98 --set qos.cpu=40us --set idle.state.C3=off'
STATE=/var/lib/wakewatt
CPU=/sys/devices/system/cpu

# Notes whether everything below the CPUs is as at the start; what differs otherwise.
same() {
  dump_cpu "$1.now"
  if cmp -s "$1.now.dump" before.dump && cmp -s "$1.now.list" before.list; then echo same; else
    diff -a before.list "$1.now.list"; diff -a before.dump "$1.now.dump"
  fi >"$1.same" 2>&1
}
n_journals() { ls $STATE/open 2>/dev/null | grep -c json; }

wakewatt tune apply $MANY >/dev/null; wakewatt tune undo >/dev/null
dump_cpu before

# A full disk: from no free page to more than enough.
mkdir -p $STATE; rm -rf ${STATE:?}/*
n=0
while [ $n -lt 12 ]; do
  mount -t tmpfs -o size=128k tmpfs $STATE; mkdir $STATE/open
  dd if=/dev/zero of=$STATE/fill bs=4k count=$((32 - n)) 2>/dev/null
  run full.$n wakewatt tune apply $MANY
  [ "$(cat full.$n.code)" = 0 ] && run full.$n.undo wakewatt tune undo
  same full.$n; n_journals >full.$n.journals
  umount $STATE; n=$((n + 1))
done

# A state folder that cannot be written.
mount -t tmpfs -o ro tmpfs $STATE; run rostate wakewatt tune apply $MANY; umount $STATE; same rostate

# Settings that cannot be written: all, then those of one CPU only.
mount -o remount,ro /sys; run rosys wakewatt tune apply $MANY; mount -o remount,rw /sys; same rosys
mount --bind $CPU/cpu1 $CPU/cpu1; mount -o remount,bind,ro $CPU/cpu1
run rocpu wakewatt tune apply $MANY; umount $CPU/cpu1; same rocpu

# The kernel says no.
run nonsense wakewatt tune apply --set freq.governor=nonsense
run einval wakewatt tune apply --set freq.governor=conservative --set freq.tunable.conservative.up_threshold=10
run nosmt wakewatt tune apply --set cpu.smt=off
run lastcpu wakewatt tune apply --set cpu.online@cpus:0=off
same no
echo 0 >$CPU/cpu1/online
run offline wakewatt tune apply --set freq.governor@cpus:1=performance
run others wakewatt tune apply --set freq.governor=performance; run others.undo wakewatt tune undo
echo 1 >$CPU/cpu1/online; same offline

# Somebody else changes what was set.
wakewatt tune apply $C3 --set freq.max=2GHz --set freq.governor=performance >/dev/null
old=$(cat $CPU/cpufreq/policy0/cpuinfo_max_freq)
echo 2600000 >$CPU/cpufreq/policy0/scaling_max_freq; echo ondemand >$CPU/cpufreq/policy1/scaling_governor
run foreign.status wakewatt tune status
run foreign.undo wakewatt tune undo
cat $CPU/cpufreq/policy0/scaling_max_freq $CPU/cpufreq/policy1/scaling_governor $CPU/cpu0/cpuidle/state3/disable >foreign.left
run foreign.force wakewatt tune undo --force
# By hand too, so that a failure here is no failure of all that follows.
sleep 1; same foreign; echo "$old" >$CPU/cpufreq/policy0/scaling_max_freq; echo schedutil >$CPU/cpufreq/policy1/scaling_governor

# A CPU that comes and goes meanwhile.
( while [ ! -e stop ]; do echo 0 >$CPU/cpu1/online; usleep 300000; echo 1 >$CPU/cpu1/online; usleep 300000; done ) &
n=0
while [ $n -lt 8 ]; do
  run toggle.$n wakewatt tune apply $MANY --set freq.max=2GHz
  run toggle.$n.status wakewatt tune status
  run toggle.$n.undo wakewatt tune undo
  n=$((n + 1))
done
: >stop; wait; echo 1 >$CPU/cpu1/online
n_journals >toggle.left
run toggle.recover wakewatt recover
run toggle.all wakewatt tune undo --all
same toggle; n_journals >toggle.journals

# The wall clock jumps while a confirmation is waited for.
for way in forwards backwards; do
  rm -f early late
  run clock.$way wakewatt tune apply $C3 --confirm-within 30s
  if [ $way = forwards ]; then date -s '2031-01-01 00:00:00'; else date -s '2001-01-01 00:00:00'; fi >/dev/null
  cat $CPU/cpu0/cpuidle/state3/disable >clock.$way.early
  run clock.$way.recover wakewatt recover
  sleep 40; cat $CPU/cpu0/cpuidle/state3/disable >clock.$way.late
  n_journals >clock.$way.journals; same clock.$way
done
run kept wakewatt tune apply $C3 --confirm-within 30s; run kept.confirm wakewatt tune confirm
sleep 40; cat $CPU/cpu0/cpuidle/state3/disable >kept.late; run kept.undo wakewatt tune undo; same kept

# The watch for the confirmation is killed too.
run orphan wakewatt tune apply $C3 --confirm-within 3s
for p in $(ps | grep 'guard --confirm' | grep -v grep | awk '{print $1}'); do kill -9 "$p"; done
sleep 4; run orphan.recover wakewatt recover; same orphan

# Two at once. The second is told; the first is not disturbed.
wakewatt tune apply $C3 --guard true --guard-for 6s >first.said 2>&1 & first=$!
sleep 3
run second wakewatt tune apply --set idle.state.C2=off
run second.undo wakewatt tune undo
run second.recover wakewatt recover
wait $first; echo $? >first.code
run first.undo wakewatt tune undo; same second

# Journals that are none.
wakewatt tune apply $C3 >/dev/null; cp $STATE/open/tune-1.json good.json
damage() {
  run bad.$1.status wakewatt tune status
  run bad.$1.verify wakewatt tune verify
  run bad.$1.undo wakewatt tune undo
  run bad.$1.recover wakewatt recover
  run bad.$1.apply wakewatt tune apply --set idle.state.C2=off
  run bad.$1.doctor wakewatt inspect holders
  [ "$(cat $CPU/cpu0/cpuidle/state2/disable)" = 1 ] && wakewatt tune undo tune-2 >/dev/null 2>&1
  rm -f $STATE/open/tune-2.json
}
head -c 100 good.json >$STATE/open/tune-1.json; damage truncated
: >$STATE/open/tune-1.json; damage empty
sed 's/"format": [0-9]*/"format": 99/' good.json >$STATE/open/tune-1.json; damage format
head -c 300 /bin/busybox >$STATE/open/tune-1.json; damage binary
cp good.json $STATE/open/tune-1.json; run mended.undo wakewatt tune undo; same bad

# Not root.
run user.apply su nobody -s /bin/sh -c "wakewatt tune apply $C3"
run user.undo su nobody -s /bin/sh -c "wakewatt tune undo"
run user.plan su nobody -s /bin/sh -c "wakewatt tune plan $C3"
run user.knobs su nobody -s /bin/sh -c "wakewatt tune knobs"
wakewatt tune apply $C3 >/dev/null
run user.status su nobody -s /bin/sh -c "wakewatt tune status"
wakewatt tune undo >/dev/null; same user
