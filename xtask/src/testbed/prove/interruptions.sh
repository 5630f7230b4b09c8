CPU=/sys/devices/system/cpu
STATE=/var/lib/wakewatt
same() {
  dump_cpu "$1.now"
  if cmp -s "$1.now.dump" before.dump; then echo same; else diff -a before.dump "$1.now.dump"; fi >"$1.same" 2>&1
}
n=0
scrape() { wget -q -O scrape.$n http://127.0.0.1:9177/metrics; n=$((n + 1)); }
toggle() {
  rm -f stop
  ( while [ ! -e stop ]; do echo 0 >$CPU/cpu1/online; usleep 150000; echo 1 >$CPU/cpu1/online; usleep 250000; done ) &
  toggler=$!
}
settle() { : >stop; wait $toggler; echo 1 >$CPU/cpu1/online; }

wakewatt recover >/dev/null 2>&1
dump_cpu before
wakewatt agent --listen 127.0.0.1:9177 --interval 1s >agent.said 2>&1 &
agent=$!
sleep 3
scrape

k=0
while [ $k -lt "$N_TOGGLED" ]; do
  toggle
  run watch.$k wakewatt watch --csv --count 4 --interval 300ms
  scrape
  run trace.$k wakewatt trace --for 2s
  run wakeup.$k wakewatt measure wakeup --duration 200ms
  scrape
  run experiment.$k wakewatt experiment plan.toml --budget 25s --seed $k --run-dir run.$k
  settle
  wakewatt recover >recover.$k.said 2>&1
  same experiment.$k
  k=$((k + 1))
done

# The wall clock jumps while watch and the agent run.
run clock.forwards wakewatt watch --csv --count 6 --interval 300ms &
sleep 1; date -s '2031-01-01 00:00:00' >/dev/null; wait $!; scrape
run clock.backwards wakewatt watch --csv --count 6 --interval 300ms &
sleep 1; date -s '2001-01-01 00:00:00' >/dev/null; wait $!; sleep 1; scrape

# Suspended down to the core, and back after five seconds by itself (power/basic-pm-debugging.rst): no emulated clock chip wakes it.
run suspend wakewatt watch --csv --count 6 --interval 300ms &
watch=$!
sleep 1
echo core >/sys/power/pm_test 2>suspend.why && echo mem >/sys/power/state 2>>suspend.why
echo $? >suspend.slept
wait $watch; sleep 1; scrape
while [ $n -lt "$N_SCRAPES" ]; do sleep 1; scrape; done

kill -TERM $agent; wait $agent; echo $? >agent.code
ls $STATE/open 2>/dev/null | grep -c json >journals
rm -rf run.*
