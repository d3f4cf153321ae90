/* lock.h — a lock that never blocks a child of fork forever; used by handle validation.
 *
 * fork copies another thread's lock, but not the thread. Handlers of pthread_atfork would solve this, but they belong
 * to the process: they run in every fork of the program, while holding the lock. So the lock's word is the id of the
 * process whose thread holds it, and a child takes over its parent's lock. The guarded data must be readable at any
 * moment, because the missing thread may have stopped half-way.
 *
 * Processes are distinguished by process id. This fails if the first process in a PID namespace forks the first process
 * in another. A program that forks there while threads are running cannot use handle validation. */
#pragma once

#include <stdatomic.h>

typedef struct rt_lock { /* zero-initialised: free */
    atomic_int owner;    /* process id; 0: free */
    atomic_int sleepers;
} rt_lock;

void rt_lock_take(rt_lock *lock);
void rt_lock_give(rt_lock *lock);
