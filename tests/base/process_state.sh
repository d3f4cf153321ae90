#!/bin/sh
# Checks that the libraries leave the state of the whole process alone: umask, working folder, environment, locale, signals,
# limits. Reading the environment or PATH without regard to additional rights of the process (setuid) is forbidden, too;
# secure_getenv is the alternative. Forbidden calls must be absent from the undefined symbols. Calls through syscall() have no symbol, therefore only the
# library that is named below may use it, and its sources are searched for the numbers. Usage: process_state.sh LIBRARY.a…
set -eu
tree=$(cd "$(dirname "$0")/../.." && pwd)
forbidden='umask chdir fchdir chroot setenv putenv unsetenv clearenv setlocale uselocale signal sigaction sigprocmask
pthread_sigmask setrlimit setrlimit64 nice setpriority exit _exit _Exit abort quick_exit atexit system popen tmpnam
tempnam mktemp strtok localtime gmtime rand srand random srandom rand_r perror printf puts putchar setuid setgid fork
vfork posix_spawnp execvp execlp getenv prctl arch_prctl personality sched_setaffinity pthread_atfork __register_atfork syscall'
found=0
for library in "$@"; do
    undefined=$(nm -u "$library" | awk 'NF == 2 && $1 == "U" { print $2 }' | sort -u)
    [ -n "$undefined" ] || { echo "nothing was read from $library"; exit 1; }
    for call in $forbidden; do
        printf '%s\n' "$undefined" | grep -qx "$call" || continue
        # The compiler starts a child, which keeps none of the program's state (codegen/subprocess.c).
        case "$(basename "$library") $call" in
            'libmdotc.a fork' | 'libmdotc.a _exit' | 'libmdotc.a signal' | 'libmdotc.a prctl') continue ;;
            'libmdot.a syscall') continue ;; # see below
        esac
        echo "$library calls $call"
        found=1
    done
done

# The numbers of system calls in each file. A futex only concerns the library's own memory. Only SYS_arch_prctl changes the
# process: it requests the permission for AMX tiles once, if an artefact has code for them (SECURITY.md).
by_number=$(cd "$tree" && grep -roE '\bsyscall *\( *[A-Za-z0-9_]*' --include='*.c' --include='*.h' runtime base |
    sed -E 's/:syscall *\( */ /' | sort -u)
[ -n "$by_number" ] || { echo "no source calls syscall"; exit 1; }
while read -r call; do
    case "$call" in
        'runtime/core/cpu_x86.c SYS_arch_prctl') ;;
        'runtime/core/lock.c SYS_futex' | 'runtime/core/workers.c SYS_futex' | 'runtime/cuda/cuda_thread.c SYS_futex') ;;
        *)
            echo "a system call that is in no list: $call"
            found=1
            ;;
    esac
done <<LIST
$by_number
LIST
prctls=$(grep -oE 'SYS_arch_prctl, *[A-Za-z0-9_]*' "$tree/runtime/core/cpu_x86.c" | sed 's/.* //' | sort -u)
[ "$prctls" = ARCH_REQ_XCOMP_PERM ] || { echo "runtime/core/cpu_x86.c asks arch_prctl for $prctls"; found=1; }
exit $found
