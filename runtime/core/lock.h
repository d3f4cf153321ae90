/* lock.h — a lock that a child of fork never blocks on forever; used by handle validation.
 *
 * fork copies a lock that another thread holds, but not that thread. Handlers of pthread_atfork would solve this,
 * but they belong to the process: they run in every fork of the program, while holding the lock. So the lock's word
 * is the id of the process whose thread holds it, and a child takes over a lock that its parent holds. The guarded
 * data must be readable at any moment, because that thread may have stopped half-way.
 *
 * Processes are distinguished by process id. This fails if the first process of a PID namespace forks the first
 * process of another. A program that forks there while threads are running cannot use handle validation.
 */
#ifndef RT_LOCK_H
#define RT_LOCK_H

#include <stdatomic.h>

typedef struct rt_lock { /* zero-initialised: free */
    atomic_int owner;    /* process id; 0: free */
    atomic_int sleepers;
} rt_lock;

void rt_lock_take(rt_lock *lock);
void rt_lock_give(rt_lock *lock);

#endif
