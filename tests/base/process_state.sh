#!/bin/sh
# Nothing in the libraries changes what belongs to the whole process: its umask, working folder, environment, locale,
# signals, limits. Usage: process_state.sh LIBRARY.a… ; the calls that may not appear among their undefined symbols:
set -eu
forbidden='umask chdir fchdir chroot setenv putenv unsetenv clearenv setlocale uselocale signal sigaction sigprocmask
pthread_sigmask setrlimit setrlimit64 nice setpriority exit _exit _Exit abort quick_exit atexit system popen tmpnam
tempnam mktemp strtok localtime gmtime rand srand random srandom rand_r perror printf puts putchar setuid setgid fork
vfork prctl personality sched_setaffinity'
found=0
for library in "$@"; do
    undefined=$(nm -u "$library" | awk 'NF == 2 && $1 == "U" { print $2 }' | sort -u)
    [ -n "$undefined" ] || { echo "nothing was read from $library"; exit 1; }
    for call in $forbidden; do
        printf '%s\n' "$undefined" | grep -qx "$call" || continue
        # The compiler's makes a child, which is left with nothing of the program (codegen/apart.c).
        case "$(basename "$library") $call" in
            'libmdotc.a fork' | 'libmdotc.a _exit' | 'libmdotc.a signal' | 'libmdotc.a prctl') continue ;;
        esac
        echo "$library calls $call"
        found=1
    done
done
exit $found
