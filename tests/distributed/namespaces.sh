#!/usr/bin/env bash
# namespaces.sh HEADROOM: two hosts in a hostfile, which are network namespaces of this machine with a
# limited link between them. Collectives are calibrated and a plan is compared under two limits: the
# predicted communication follows the limit, and the measured one follows the prediction. Needs root,
# ip, tc and the kernel's token bucket filter; else the test is skipped.
set -euo pipefail
headroom=$1
source "$(dirname "$0")/mpirun.sh"
for tool in ip tc unshare python3; do
  command -v "$tool" >/dev/null || { echo "SKIPPED: no $tool"; exit 0; }
done
name=hr$$
folder=$(mktemp -d)
clean_up() {
  ip netns delete "$name-a" 2>/dev/null || true
  ip netns delete "$name-b" 2>/dev/null || true
  rm -rf "$folder"
}
trap clean_up EXIT
ip netns add "$name-a" 2>/dev/null || { echo 'SKIPPED: no right to add a network namespace'; exit 0; }
ip netns add "$name-b"
ip link add "$name-0" netns "$name-a" type veth peer name "$name-1" netns "$name-b"
ip -n "$name-a" address add 10.77.0.1/24 dev "$name-0"
ip -n "$name-b" address add 10.77.0.2/24 dev "$name-1"
for end in a-0 b-1; do
  ip -n "$name-${end%-*}" link set lo up
  ip -n "$name-${end%-*}" link set "$name-${end#*-}" up
done

# limit RATE: of each direction.
limit() {
  for end in a-0 b-1; do
    tc -n "$name-${end%-*}" qdisc replace dev "$name-${end#*-}" root tbf rate "$1" burst 256kb \
      latency 100ms
  done
}
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
for rate in 400 1600; do
  limit "${rate}mbit"
  run calibrate --collectives --quick -q >/dev/null
  run compare bert-mini --tp 2 --batch 4 --seq 512 --threads 1 --runs 5 -q --tolerance time=1e9% --json \
    >"$folder/$rate.json"
done
python3 - "$folder" <<'END'
import json
import pathlib
import sys

folder = pathlib.Path(sys.argv[1])
seconds = {}
for rate in (400, 1600):
    ranks = json.loads((folder / f"{rate}.json").read_text())["processes"]["ranks"]
    predicted, measured = (max(rank[f"{side}_communication_s"] for rank in ranks)
                           for side in ("predicted", "measured"))
    print(f"{rate} Mbit/s: {1e3 * predicted:.1f} ms predicted, {1e3 * measured:.1f} ms measured")
    assert 0.5 < measured / predicted < 2, "the measured time does not follow the prediction"
    seconds[rate] = predicted
# Latency and bursts do not follow the limit.
ratio = seconds[400] / seconds[1600]
assert 2 < ratio < 5, f"a quarter of the bandwidth takes {ratio:.2f} times as long"
END
