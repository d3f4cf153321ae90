/* lock.h — a lock that no child of fork is left waiting for: armor's.
 *
 * fork copies a lock that another thread holds as held, and not the thread. Handlers of pthread_atfork would mend that,
 * but they belong to the process: they run in every fork of the program's, with the lock in hand. So the lock's word is
 * the process whose thread holds it, and a child takes what it finds with its parent. What the lock guards must be
 * readable at any moment, since that thread may have stopped half-way.
 *
 * Processes are told apart by number, which fails where the first of a PID namespace forks the first of another: who
 * forks there with threads at work goes without armor.
 */
#ifndef RT_LOCK_H
#define RT_LOCK_H

#include <stdatomic.h>

typedef struct rt_lock { /* zero is free */
    atomic_int owner;    /* a process; 0: nobody */
    atomic_int sleepers;
} rt_lock;

void rt_lock_take(rt_lock *lock);
void rt_lock_give(rt_lock *lock);

#endif
