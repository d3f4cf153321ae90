/* lock.c — see lock.h. */
#include "runtime/core/lock.h"

#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

void rt_lock_take(rt_lock *lock)
{
    int self = (int)getpid(), owner = 0;
    while (!atomic_compare_exchange_strong(&lock->owner, &owner, self)) {
        if (owner != self) continue; /* the lock is free, or held by a thread of the parent process: take it over */
        atomic_fetch_add(&lock->sleepers, 1);
        syscall(SYS_futex, &lock->owner, FUTEX_WAIT_PRIVATE, self, NULL, NULL, 0);
        atomic_fetch_sub(&lock->sleepers, 1);
        owner = 0;
    }
}

/* The word changes before the sleepers are read, so that every sleeper is woken. */
void rt_lock_give(rt_lock *lock)
{
    atomic_store(&lock->owner, 0);
    if (atomic_load(&lock->sleepers) > 0) syscall(SYS_futex, &lock->owner, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}
