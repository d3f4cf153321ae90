#!/bin/sh
# Nothing in the libraries changes what belongs to the whole process: its umask, working folder, environment, locale,
# signals, limits. Usage: process_state.sh LIBRARY.a… ; the calls that may not appear among their undefined symbols:
set -eu
forbidden='umask chdir fchdir chroot setenv putenv unsetenv clearenv setlocale uselocale signal sigaction sigprocmask
pthread_sigmask setrlimit setrlimit64 nice setpriority exit _exit _Exit abort quick_exit atexit system popen tmpnam
tempnam mktemp strtok localtime gmtime rand srand random srandom rand_r perror printf puts putchar setuid setgid fork
vfork prctl personality sched_setaffinity'
undefined=$(nm -u "$@" | awk 'NF == 2 && $1 == "U" { print $2 }' | sort -u)
[ -n "$undefined" ] || { echo "nothing was read from $*"; exit 1; }
found=0
for call in $forbidden; do
    if printf '%s\n' "$undefined" | grep -qx "$call"; then
        echo "$call is called by:"
        for library in "$@"; do nm -Au "$library" | awk -v call="$call" '$NF == call { print "  " $1 }'; done
        found=1
    fi
done
exit $found
