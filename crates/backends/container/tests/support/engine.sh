#!/bin/sh
# Runs an engine of the tests' own, and ends it with all that it made once no test uses it any more.
# usage: engine.sh docker|podman|alone DIRECTORY
# Tests hold a shared lock on DIRECTORY/users while they run. The engine has its own mounts, processes and network.
set -u
kind=$1 dir=$2
cd "$dir" || exit 1

# The shell stays as the first process: it takes note of the dead that the engine leaves to it, and an engine does not.
# What engines write outside of the directory that they are given goes below it too: an empty directory is all that is left there.
contained() {
    unshare --mount --pid --net --fork --kill-child=SIGKILL --mount-proc --propagation private \
        sh -c '
            dir=$1
            shift
            for place in /etc/docker /etc/containers/networks /opt/containerd /var/lib/containers /run/containerd /run/containers; do
                mkdir -p "$place" "$dir/elsewhere$place" && mount --bind "$dir/elsewhere$place" "$place"
            done
            ip link set lo up 2>/dev/null
            "$@" & wait $!' sh "$dir" "$@" >log 2>&1 </dev/null &
}

case $kind in
docker)
    contained dockerd --data-root "$dir/data" --exec-root "$dir/exec" --pidfile "$dir/pid" \
        -H "unix://$dir/sock" --cgroup-parent "/wharf-test-$$"
    ;;
alone)
    # One that can be killed without its containers: whoever makes the file `kill` has it done, and it stays down for as
    # long as there is a file `hold`.
    contained sh -c '
        dir=$1 group=$2
        run() {
            rm -f "$dir/pid"
            dockerd --live-restore --data-root "$dir/data" --exec-root "$dir/exec" --pidfile "$dir/pid" \
                -H "unix://$dir/sock" --cgroup-parent "$group" &
            engine=$!
        }
        run
        while :; do
            if [ -e "$dir/kill" ]; then
                kill -KILL "$engine"
                wait "$engine"
                rm -f "$dir/kill"
                while [ -e "$dir/hold" ]; do sleep 0.1; done
                run
            fi
            sleep 0.1
        done' sh "$dir" "/wharf-test-$$"
    ;;
podman)
    cat >containers.conf <<CONF
[containers]
default_ulimits=["nofile=20000:20000","nproc=4096:4096"]
[engine]
runtime="runc"
cgroup_manager="cgroupfs"
events_logger="file"
[network]
network_backend="netavark"
CONF
    export CONTAINERS_CONF="$dir/containers.conf"
    # What it unpacks goes here and not to /var/tmp, where nobody would remove it.
    mkdir -p "$dir/unpacked"
    export TMPDIR="$dir/unpacked"
    contained podman --root "$dir/data" --runroot "$dir/exec" --tmpdir "$dir/tmp" \
        system service --time=0 "unix://$dir/sock"
    ;;
esac
engine=$!

finish() {
    kill -KILL "$engine" 2>/dev/null
    wait "$engine" 2>/dev/null
    # Out of the way first: the next engine may come to the same place at once.
    gone="$dir.gone.$$"
    mv "$dir" "$gone" 2>/dev/null || gone=$dir
    # What was killed, and what was mounted for it, may take a moment to go.
    for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
        find /sys/fs/cgroup -depth -type d \( -path "*/wharf-test-$$*" -o -path '*/libpod_parent*' \) \
            -exec rmdir {} + 2>/dev/null
        left=$(find /sys/fs/cgroup -type d -name "wharf-test-$$" 2>/dev/null)
        rm -rf "$gone" 2>/dev/null && [ -z "$left" ] && break
        sleep 0.5
    done
    exit 0
}
trap finish TERM INT HUP

# Between two tests nobody holds the lock for a moment: it must stay free for a while.
free=0
while [ $free -lt 20 ] && kill -0 "$engine" 2>/dev/null; do
    if flock --exclusive --nonblock users true; then free=$((free + 1)); else free=0; fi
    sleep 0.5
done
# A test that comes from here on waits, and then starts another engine.
exec 9>>users
flock --exclusive 9
finish
