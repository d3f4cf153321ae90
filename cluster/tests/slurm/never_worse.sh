#!/bin/bash
# The law of the plugin, on a real slurmctld: no request is worse off with --mdot than without. Random requests are
# submitted twice, with and without the option, to a cluster with random partitions, reservations, limits of accounting
# and settings. GPUs suffice for all of them, so that none waits for another. Some are changed with scontrol, and the
# controller restarts with some of them in the queue.
#
#     cluster/tests/slurm/never_worse.sh [BUILD MDOT PREDICTOR JOBS]
#
# Arguments, packages and exit status are those of cluster.sh; also slurmdbd and mariadb-server. REQUESTS=1000 and SEED=1
# may be set, and ACCOUNTING=none leaves out accounts, QOS and their limits. A thousand requests take about 20 minutes.
cards=64 cores=256 accounting_type=${ACCOUNTING:-slurmdbd}
# shellcheck source=start_cluster.sh
. "$(dirname "$0")/start_cluster.sh"

RANDOM=${SEED:-1}
requests=${REQUESTS:-1000}
is_up() { [ -s "$work/slurmctld.pid" ] && [ -d "/proc/$(cat "$work/slurmctld.pid")" ]; }
wishes=resnet50.job,batch=128,precision=amp
partitions="a100 h100 short mixed plain high open"
pick() { eval "picked=\${$((RANDOM % $# + 1))}"; }
one_in() { [ $((RANDOM % $1)) = 0 ]; }

{
    echo "PartitionName=high Nodes=$host State=UP" # without DefaultTime and MaxTime
    echo "PartitionName=open Nodes=$host MaxTime=600 State=UP"
    echo "PreemptType=preempt/partition_prio"
    echo "PreemptMode=REQUEUE"
    echo "OverTimeLimit=0"
} >> "$SLURM_CONF"
restart() {
    kill "$(cat "$work/slurmctld.pid")" 2> /dev/null
    for _ in $(seq 100); do is_up || break; sleep .2; done
    (cd "$work" && ulimit -c unlimited && slurmctld -f "$SLURM_CONF")
    for _ in $(seq 100); do scontrol ping 2> /dev/null | grep -q UP && return; sleep .2; done
}
sacctmgr() { [ $accounting_type = none ] || command sacctmgr "$@"; }
without_accounting() { [ $accounting_type = none ] && picked=; }
for account in physics biology; do sacctmgr -i add account $account > /dev/null; done
for account in physics biology; do sacctmgr -i add user nobody account=$account > /dev/null; done
sacctmgr -i add qos brief counted > /dev/null
sacctmgr -i modify qos brief set MaxWall=45 > /dev/null
sacctmgr -i modify user nobody set qos=normal,brief,counted defaultqos=normal > /dev/null
site "Partition=plain Gpu=A100-SXM-40GB" "Partition=high Gpu=A100-SXM-40GB" "Partition=open Gpu=H100-SXM-80GB"
restart
settle
ready=$(user sbatch --parsable -H -o /dev/null -p high --gres=gpu:1 --mdot=$wishes,steps=1000 job.sh 2> messages) || skip "no job is accepted: $(cat messages)"
id=$ready
check "the cluster gives a job a limit" [ "$(field limit_min)" -gt 0 ]
scancel -u nobody

# ---- Random clusters and requests -------------------------------------------------------------------------------------

draw_cluster() {
    local reservation name
    pick ALL ANY NO
    sed -i "s/^EnforcePartLimits=.*/EnforcePartLimits=$picked/" "$SLURM_CONF"
    described="EnforcePartLimits=$picked"
    pick 0 0 5 UNLIMITED
    sed -i "s/^OverTimeLimit=.*/OverTimeLimit=$picked/" "$SLURM_CONF"
    pick no no time cost
    site "Partition=plain Gpu=A100-SXM-40GB" "Partition=high Gpu=A100-SXM-40GB" "Partition=open Gpu=H100-SXM-80GB" Choose=$picked > /dev/null &
    local site_read=$!
    scontrol reconfigure
    for name in $(scontrol -o show reservation | sed -n 's/^ReservationName=\([^ ]*\).*/\1/p'); do
        scontrol delete ReservationName="$name" > /dev/null
    done
    for partition in $partitions; do
        pick UP UP UP UP UP UP UP UP DOWN DOWN INACTIVE DRAIN
        local changes="State=$picked"
        pick ALL ALL ALL ALL ALL ALL ALL root
        changes="$changes AllowGroups=$picked"
        pick 5 30 600 INFINITE INFINITE
        changes="$changes MaxTime=$picked"
        pick 2 7 40 INFINITE
        [ $partition = high ] || [ $partition = open ] || changes="$changes DefaultTime=$picked"
        pick 0 0 5 UNLIMITED
        changes="$changes OverTimeLimit=$picked PriorityTier=$((1 + RANDOM % 2))"
        pick "QOS=" "QOS=" "QOS=" QOS=brief
        without_accounting
        # shellcheck disable=SC2086 # words
        scontrol update PartitionName=$partition $changes $picked
        described="$described; $partition $changes $picked"
    done
    for reservation in one two; do
        one_in 2 && continue
        pick now+3minutes now+20minutes now+4hours now+2days now
        local when=$picked
        pick Duration=60 Duration=2-0
        local length=$picked
        pick Flags=MAINT Flags=MAINT,IGNORE_JOBS,OVERLAP Flags=DAILY Flags=WEEKLY Flags=HOURLY Flags=FLEX Flags=MAGNETIC \
            Flags=TIME_FLOAT Flags=PURGE_COMP Flags=REPLACE Flags=OVERLAP Flags=SPEC_NODES
        local flags=$picked
        case $flags in *DAILY | *HOURLY) length=Duration=30 ;; esac
        pick Nodes=ALL "NodeCnt=1 PartitionName=a100" "Nodes=$host CoreCnt=4"
        local nodes=$picked
        pick Users=root Users=nobody Accounts=physics
        [ "$picked" = Accounts=physics ] && [ $accounting_type = none ] && picked=Users=nobody
        # shellcheck disable=SC2086
        scontrol create reservation ReservationName=$reservation StartTime=$when $length $flags $nodes $picked > /dev/null 2>&1 &&
            described="$described; reservation $reservation $when $length $flags $nodes $picked"
    done
    pick -1 -1 -1 5 30 300
    sacctmgr -i modify user nobody where account=physics set MaxWall=$picked > /dev/null
    described="$described; physics MaxWall=$picked"
    pick -1 -1 60
    sacctmgr -i modify account biology set MaxWall=$picked > /dev/null
    described="$described; biology MaxWall=$picked"
    pick cpu=20 cpu=-1 # limits of groups would make the two jobs of a pair wait for each other
    sacctmgr -i modify qos counted set MaxTRESMinsPerJob=$picked > /dev/null
    described="$described; counted MaxTRESMinsPerJob=$picked"
    wait $site_read
    sleep 2.5
}

draw_request() {
    pick a100 h100 short mixed plain high open high a100,h100 short,a100 mixed,h100,short plain,a100 high,short open,high
    options="--partition=$picked"
    pick --gres=gpu:1 --gres=gpu:1 --gres=gpu:a100:1 --gpus=2 --gres=gpu:h100:2 "--gres=gpu:1 --mem=100" ""
    options="$options $picked"
    pick "" "" "" --time=4 --time=25 --time=2-0
    options="$options $picked"
    pick "" "" "" --time-min=3 --time-min=20
    options="$options $picked"
    pick "" "" "" --deadline=now+8minutes --deadline=now+3hours
    options="$options $picked"
    pick "" "" "" --nodes=1-2 --ntasks=2 --array=0-1 --begin=now+1 --begin=now+2hours --nice=10 --cpus-per-task=3 \
        --dependency=afterany:1 --requeue --no-requeue
    options="$options $picked"
    pick "" "" --account=physics --account=biology
    without_accounting
    options="$options $picked"
    pick "" "" "" --qos=normal --qos=brief --qos=counted
    without_accounting
    options="$options $picked"
    one_in 8 && scontrol show reservation=one > /dev/null 2>&1 && options="$options --reservation=one"
    one_in 8 && options="$options --gres=gpu:0 : --partition=high --gres=gpu:1" # a heterogeneous job
    pick 1 3000 100000 1000000
    steps=$picked
}

draw_change() {
    pick Partition=short Partition=a100,h100 Partition=high Partition=plain Deadline=now+20minutes QOS=brief QOS=counted \
        Account=physics Account=biology TimeLimit=2 ReservationName=one TimeMin=2 NumNodes=1 Nice=5
    change=$picked
    case $accounting_type$change in noneQOS=* | noneAccount=*) change=Nice=5 ;; esac
}

# ---- Comparison -------------------------------------------------------------------------------------------------------

# Prints the rank of a state and a reason: 3 runs, 2 waits for what any job would wait, 1 waits for a limit, 0 has ended.
rank_of() {
    case $1 in
        RUNNING* | COMPLET* | CONFIGURING*) echo 3 ;;
        PENDING\|PartitionDown* | PENDING\|PartitionInactive* | PENDING\|Resources* | PENDING\|Priority* | PENDING\|None* | \
            PENDING\|BeginTime* | PENDING\|Dependency* | PENDING\|Nodes\ required*higher\ priority*) echo 2 ;;
        PENDING*) echo 1 ;;
        *) echo 0 ;;
    esac
}
state_of() { squeue -h -t all -j "$1" -o '%T|%r|%l|%P' 2> /dev/null | sort | head -1; }
worse=0 tried=0 changed=0 refused=0 runs=0 waits=0 limits=0
limit_of() { # a limit of squeue in seconds
    case $1 in
        *[A-Z]*) echo 999999999 ;;
        *) echo "$1" | awk -F'[-:]' '{ n = NF; s = $n + 60 * $(n-1); if (n > 2) s += 3600 * $(n-2); if (n > 3) s += 86400 * $1; print s }' ;;
    esac
}
# A job whose deadline comes before its earliest end can never run. Slurm ends it as DEADLINE when it next considers it,
# which it may put off for as long as the job is over a limit of accounting.
is_too_late() { # is_too_late JOB
    local job least end
    job=$(scontrol -o show job "$1" 2> /dev/null | head -1)
    end=$(sed -n 's/.* Deadline=\([0-9][^ ]*\).*/\1/p' <<< "$job")
    least=$(sed -n 's/.* TimeMin=\([^ ]*\).*/\1/p' <<< "$job")
    [ "$least" != N/A ] || least=$(sed -n 's/.* TimeLimit=\([^ ]*\).*/\1/p' <<< "$job")
    [ -n "$end" ] && [[ $least == [0-9]* ]] && [ $(($(date +%s) + $(limit_of "$least"))) -gt "$(date -d "$end" +%s)" ]
}
is_worse() { # is_worse JOB STATE PLAIN: whether the job is worse off than PLAIN, which is in STATE
    local state
    state=$(state_of "$1")
    # With a limit that is not longer, reasons of two waiting jobs differ only because one is ahead of the other.
    local place=${state#*|*|} other=${2#*|*|}
    [[ $state == PENDING* && $2 == PENDING* && ${place#*|} == "${other#*|}" ]] &&
        [ "$(limit_of "${place%|*}")" -le "$(limit_of "${other%|*}")" ] && return 1
    # Without a limit by the plugin, and in the same partitions, Slurm treats the two jobs alike; only their order differs.
    [[ $state == PENDING* && ${place#*|} == "${other#*|}" ]] && ! scontrol -o show job "$1" | grep -q ' limit_min=' && return 1
    [ "$(rank_of "$state")" -lt "$(rank_of "$2")" ] || return 1
    [[ $2 != PENDING* ]] || ! is_too_late "$3"
}
stays_worse() { # stays_worse I: whether the pair still differs after a while; $state is that of the job without --mdot
    for _ in $(seq 75); do
        state=$(state_of "${plain[$1]}")
        is_worse "${with[$1]}" "$state" "${plain[$1]}" || return 1
        sleep .2
    done
}
compare() { # compares all pairs of a batch
    local i state doubtful=()
    for i in "${!plain[@]}"; do
        case $(rank_of "$(state_of "${plain[i]}")") in 3) runs=$((runs + 1)) ;; 2) waits=$((waits + 1)) ;; esac
        stays_worse "$i" && doubtful+=("$i")
    done
    # A job in a partition of a higher tier holds back those that come after it, thus perhaps one of a pair. Alone, a pair
    # has nothing to wait for but its own limits.
    for i in "${!plain[@]}"; do
        [[ " ${doubtful[*]} " == *" $i "* ]] || [ ${#doubtful[@]} = 0 ] || scancel "${plain[i]}" "${with[i]}" 2> /dev/null
    done
    for i in "${doubtful[@]}"; do
        stays_worse "$i" || continue
        worse=$((worse + 1))
        echo "WORSE: ${wanted[i]}: $state without --mdot, $(state_of "${with[i]}") with it"
        echo "    in: $described"
        scontrol -o show job "${with[i]}" | grep -o 'AdminComment=mdot.*'
    done
}
submit_one() { # submit_one OPTION…: prints the job's number
    sbatch --uid=nobody --gid=nogroup --parsable -o /dev/null "$@" job.sh 2> messages
}
# Slurm 24.11 refuses some changes for a moment (EAGAIN), while its backfill scheduler has the job.
update_job() { # update_job JOB CHANGE
    for _ in $(seq 50); do
        user scontrol update JobId="$1" "$2" > messages 2>&1 && return 0
        grep -q "temporarily unavailable" messages || return 1
        sleep .2
    done
    return 1
}
# Slurm 22.05 itself corrupts its heap now and then: without the plugin, too, it ended once in 600 such requests, in
# purge_old_job(). The batch is left out then, if gdb shows that the thread has no function of the plugin.
judge_end() {
    local trace
    trace=$(gdb -batch -ex bt "$(command -v slurmctld)" "$(find "$work" -name 'core*' | head -1)" 2> /dev/null | grep '^#')
    echo "slurmctld has ended: $(sed -n 's/.* in \([a-z_]*\) (.*/\1/p' <<< "$trace" | tr '\n' ' ')"
    if [ -z "$trace" ] || grep -q mdot <<< "$trace"; then
        echo "FAILED: slurmctld has ended, perhaps in the plugin (gdb tells), in: $described"
        exit 1
    fi
    find "$work" -name 'core*' -delete
    restart
}
while [ "$tried" -lt "$requests" ]; do
    draw_cluster
    is_up || { judge_end; continue; }
    for batch in 1 2; do
        plain=() with=() wanted=()
        for _ in $(seq 32); do
            draw_request
            # shellcheck disable=SC2086 # words
            if ! number=$(submit_one $options); then
                is_up || break
                refused=$((refused + 1))
                continue
            fi
            tried=$((tried + 1))
            # shellcheck disable=SC2086
            if ! other=$(submit_one $options --mdot=$wishes,steps=$steps); then
                is_up || break
                worse=$((worse + 1))
                echo "WORSE: $options steps=$steps is refused: $(cat messages)"
                echo "    in: $described"
                continue
            fi
            plain+=("$number") with+=("$other") wanted+=("$options steps=$steps")
        done
        sleep 2.5
        for i in "${!plain[@]}"; do
            one_in 4 || continue
            draw_change
            is_too_late "${plain[i]}" && continue # a change could save only the one that Slurm has not ended yet
            update_job "${plain[i]}" $change || continue
            changed=$((changed + 1))
            wanted[i]="${wanted[i]}, then $change"
            update_job "${with[i]}" $change && continue
            is_up || break
            # Slurm accepts a user's Deadline for a running job, without effect, and refuses it for a waiting one. `compare`
            # judges a pair of which only one runs.
            [[ $(rank_of "$(state_of "${plain[i]}")")$(rank_of "$(state_of "${with[i]}")") == *3* ]] && continue
            worse=$((worse + 1))
            echo "WORSE: ${wanted[i]} is refused: $(cat messages)"
            echo "    in: $described"
        done
        [ $batch = 2 ] && one_in 3 && restart
        sleep 1
        is_up && limits=$((limits + $(scontrol -o show job | grep -c ' limit_min='))) && compare
        is_up || judge_end
        scancel -u nobody 2> /dev/null
        scancel "${plain[@]}" "${with[@]}" 2> /dev/null # heterogeneous jobs
        for _ in $(seq 100); do [ -z "$(squeue -h)" ] && break; sleep .2; done
    done
    echo "$tried requests, $worse worse; $(date +%H:%M:%S)"
done
check "of $tried random requests, none is worse off ($runs run, $waits wait; $changed changes, $limits limits, $refused refused by Slurm alone)" \
    [ "$worse" = 0 ]
check "(with requests to compare)" [ "$runs" -gt $((tried / 10)) -a "$limits" -gt $((tried / 10)) ]
[ "$failures" -eq 0 ] || exit 1
echo "all is right"
