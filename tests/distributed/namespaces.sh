#!/usr/bin/env bash
# namespaces.sh HEADROOM [MBIT_PER_S[/DELAY_MS]…]: two hosts in a hostfile, which are network
# namespaces of this machine with a limited link between them. Collectives are calibrated and a plan
# is compared under each limit (1600 and 1600/5). Fails if a count differs from the plan's; prints
# predicted and measured times of communication, which a busy machine sets apart. Needs root, ip, tc
# and the kernel's token bucket filter, and TUN devices for a delay; else the test is skipped.
set -euo pipefail
headroom=$1
shift
limits=("$@")
[[ $# -gt 0 ]] || limits=(1600 1600/5)
source "$(dirname "$0")/mpirun.sh"
for tool in ip tc unshare python3; do
  command -v "$tool" >/dev/null || { echo "SKIPPED: no $tool"; exit 0; }
done
name=hr$$
folder=$(mktemp -d)
relay=
clean_up() {
  if [[ -n $relay ]]; then kill "$relay" 2>/dev/null || true; fi
  ip netns delete "$name-a" 2>/dev/null || true
  ip netns delete "$name-b" 2>/dev/null || true
  rm -rf "$folder"
}
trap clean_up EXIT
ip netns add "$name-a" 2>/dev/null || { echo 'SKIPPED: no right to add a network namespace'; exit 0; }
ip netns add "$name-b"
for host in a b; do ip -n "$name-$host" link set lo up; done

# connect MS: a link of that delay, in place of the last one.
connect() {
  if [[ -n $relay ]]; then
    kill "$relay"
    wait "$relay" 2>/dev/null || true
    relay=
  fi
  ip -n "$name-a" link delete hr0 2>/dev/null || true
  if [[ $1 == 0 ]]; then
    ip link add hr0 netns "$name-a" type veth peer name hr0 netns "$name-b"
  else
    coproc python3 "$(dirname "$0")/delayed_link.py" "$name-a" "$name-b" hr0 "$1" 2>/dev/null
    relay=$COPROC_PID
    read -r <&"${COPROC[0]}" || { echo 'SKIPPED: no TUN devices'; exit 0; }
  fi
  ip -n "$name-a" address add 10.77.0.1/24 dev hr0
  ip -n "$name-b" address add 10.77.0.2/24 dev hr0
  for host in a b; do ip -n "$name-$host" link set hr0 mtu 9000 up; done
}

# limit RATE: of each direction.
limit() {
  for host in a b; do
    tc -n "$name-$host" qdisc replace dev hr0 root tbf rate "$1" burst 256kb latency 100ms
  done
}
connect 0
limit 100mbit 2>/dev/null || { echo 'SKIPPED: the kernel has no token bucket filter'; exit 0; }

# Enters the namespace of a host under a name of its own, as ssh would.
cat >"$folder/agent" <<END
#!/usr/bin/env bash
host=\$1
shift
end=a
[[ \$host == 10.77.0.2 ]] && end=b
exec ip netns exec $name-\$end unshare --uts bash -c "hostname node-\$end && \$*"
END
chmod +x "$folder/agent"
printf '10.77.0.1 slots=1\n10.77.0.2 slots=1\n' >"$folder/hosts"
export XDG_DATA_HOME=$folder
# run ARGS…: headroom on both hosts, messages over the link.
run() {
  ip netns exec "$name-a" unshare --uts bash -c 'hostname node-a && exec "$@"' - \
    timeout 300 mpirun "${mpirun_options[@]}" -n 2 --hostfile "$folder/hosts" \
    --mca plm_rsh_agent "$folder/agent" --mca btl tcp,self --mca btl_tcp_if_include 10.77.0.0/24 \
    --mca oob_tcp_if_include 10.77.0.0/24 -x XDG_DATA_HOME \
    "$headroom" "$@" </dev/null
}
"$headroom" calibrate --quick --threads 1 -q >/dev/null
for link in "${limits[@]}"; do
  delay=0
  [[ $link == */* ]] && delay=${link#*/}
  connect "$delay"
  limit "${link%/*}mbit"
  run calibrate --collectives --quick -q >/dev/null
  run compare bert-mini --tp 2 --batch 4 --seq 512 --threads 1 --runs 5 -q --tolerance time=1e9% --json \
    >"$folder/${link/\//-}.json"
done
python3 - "$folder" "${limits[@]}" <<'END'
import json
import pathlib
import sys

folder, *limits = sys.argv[1:]
for limit in limits:
    rate, _, delay = limit.partition("/")
    file = limit.replace("/", "-") + ".json"
    report = json.loads((pathlib.Path(folder) / file).read_text())
    counts = [row for row in report["rows"] if row["tolerance"] == 0]
    different = [row["quantity"] for row in counts if row["result"] != "pass"]
    assert counts and not different, f"{different} differ over the network"
    ranks = report["processes"]["ranks"]
    predicted, measured = (max(rank[f"{side}_communication_s"] for rank in ranks)
                           for side in ("predicted", "measured"))
    print(f"{rate} Mbit/s, {delay or 0} ms: {1e3 * predicted:.1f} ms predicted, {1e3 * measured:.1f} ms measured")
END
