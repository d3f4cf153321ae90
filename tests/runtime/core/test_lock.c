/* test_lock.c — the lock in handle validation: one thread at a time holds it, and a child of fork never waits for it in
 * vain. */
#include "runtime/core/lock.h"
#include "tests/support/assertions.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { THREADS = 4, ROUNDS = 20000 };

static rt_lock lock;
static int sum; /* guarded by the lock */

static void *add(void *argument)
{
    for (int i = 0; i < ROUNDS; i++) {
        rt_lock_take(&lock);
        sum++;
        rt_lock_give(&lock);
    }
    return argument;
}

static void one_thread_holds_the_lock_at_a_time(void **state)
{
    (void)state;
    pthread_t threads[THREADS];
    sum = 0;
    for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_create(&threads[i], NULL, add, NULL), 0);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    assert_int_equal(sum, THREADS * ROUNDS);
    assert_int_equal(lock.owner, 0);
    assert_int_equal(lock.sleepers, 0);
}

static void *take(void *argument)
{
    rt_lock_take(&lock);
    return argument;
}

/* A thread absent in the child holds the lock, or the parent of a grandchild held it. */
static void a_forked_child_takes_the_lock_of_a_lost_thread(void **state)
{
    (void)state;
    enum { PATIENCE_S = 60 }; /* time limit, after which the child counts as hanging */
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, take, NULL), 0);
    pthread_join(thread, NULL);
    int owner = lock.owner;
    pid_t child = fork();
    assert_compare(child, >=, 0);
    if (child == 0) {
        alarm(PATIENCE_S);
        rt_lock_take(&lock);
        pid_t grandchild = fork();
        if (grandchild == 0) alarm(PATIENCE_S);
        if (grandchild == 0) rt_lock_take(&lock);
        int ended = 0;
        if (grandchild > 0) waitpid(grandchild, &ended, 0);
        _exit(lock.owner == (int)getpid() && ended == 0 ? 0 : 1);
    }
    int ended = -1;
    assert_int_equal(waitpid(child, &ended, 0), child);
    assert_int_equal(ended, 0);
    assert_int_equal(lock.owner, owner); /* the parent's lock is unchanged */
    rt_lock_give(&lock);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_thread_holds_the_lock_at_a_time),
        cmocka_unit_test(a_forked_child_takes_the_lock_of_a_lost_thread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
