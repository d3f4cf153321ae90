#!/bin/sh
# Nothing in the libraries changes what belongs to the whole process: its umask, working folder, environment, locale,
# signals, limits. Usage: process_state.sh LIBRARY.a… ; the calls that may not appear among their undefined symbols.
# What syscall() calls has no symbol: only the library that is named below has it, and its sources say what for.
set -eu
tree=$(cd "$(dirname "$0")/../.." && pwd)
forbidden='umask chdir fchdir chroot setenv putenv unsetenv clearenv setlocale uselocale signal sigaction sigprocmask
pthread_sigmask setrlimit setrlimit64 nice setpriority exit _exit _Exit abort quick_exit atexit system popen tmpnam
tempnam mktemp strtok localtime gmtime rand srand random srandom rand_r perror printf puts putchar setuid setgid fork
vfork prctl arch_prctl personality sched_setaffinity pthread_atfork __register_atfork syscall'
found=0
for library in "$@"; do
    undefined=$(nm -u "$library" | awk 'NF == 2 && $1 == "U" { print $2 }' | sort -u)
    [ -n "$undefined" ] || { echo "nothing was read from $library"; exit 1; }
    for call in $forbidden; do
        printf '%s\n' "$undefined" | grep -qx "$call" || continue
        # The compiler's makes a child, which is left with nothing of the program (codegen/subprocess.c).
        case "$(basename "$library") $call" in
            'libmdotc.a fork' | 'libmdotc.a _exit' | 'libmdotc.a signal' | 'libmdotc.a prctl') continue ;;
            'libmdot.a syscall') continue ;; # below
        esac
        echo "$library calls $call"
        found=1
    done
done

# Each file's numbers of system calls. A futex is the library's own word. SYS_arch_prctl is the one thing that changes the
# process: the permission for AMX tiles, which is asked for once, where an artefact has code for them (SECURITY.md).
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
