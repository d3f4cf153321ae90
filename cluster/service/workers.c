/* workers.c — see workers.h. */
#include "service/workers.h"

#include <pthread.h>
#include <stdlib.h>

typedef struct task {
    void (*run)(void *user);
    void *user;
} task;

struct sv_workers {
    pthread_mutex_t mutex;
    pthread_cond_t has_task;
    task *ring;
    size_t capacity, first, count;
    pthread_t *threads;
    size_t thread_count;
    bool is_ending;
};

static void *work(void *user)
{
    sv_workers *w = user;
    pthread_mutex_lock(&w->mutex);
    for (;;) {
        while (w->count == 0 && !w->is_ending) pthread_cond_wait(&w->has_task, &w->mutex);
        if (w->count == 0) break;
        task next = w->ring[w->first];
        w->first = (w->first + 1) % w->capacity;
        w->count--;
        pthread_mutex_unlock(&w->mutex);
        next.run(next.user);
        pthread_mutex_lock(&w->mutex);
    }
    pthread_mutex_unlock(&w->mutex);
    return NULL;
}

sv_workers *sv_workers_create(size_t threads, size_t most_waiting)
{
    sv_workers *w = calloc(1, sizeof *w);
    if (w == NULL) return NULL;
    pthread_mutex_init(&w->mutex, NULL);
    pthread_cond_init(&w->has_task, NULL);
    w->capacity = most_waiting;
    w->ring = calloc(most_waiting, sizeof *w->ring);
    w->threads = calloc(threads, sizeof *w->threads);
    while (w->ring != NULL && w->threads != NULL && w->thread_count < threads &&
           pthread_create(&w->threads[w->thread_count], NULL, work, w) == 0)
        w->thread_count++;
    if (w->thread_count == threads) return w;
    sv_workers_destroy(w);
    return NULL;
}

void sv_workers_destroy(sv_workers *w)
{
    if (w == NULL) return;
    pthread_mutex_lock(&w->mutex);
    w->is_ending = true;
    pthread_cond_broadcast(&w->has_task);
    pthread_mutex_unlock(&w->mutex);
    for (size_t i = 0; i < w->thread_count; i++) pthread_join(w->threads[i], NULL);
    pthread_cond_destroy(&w->has_task);
    pthread_mutex_destroy(&w->mutex);
    free(w->threads);
    free(w->ring);
    free(w);
}

bool sv_workers_add(sv_workers *w, void (*run)(void *user), void *user)
{
    pthread_mutex_lock(&w->mutex);
    bool has_space = w->count < w->capacity && !w->is_ending;
    if (has_space) {
        w->ring[(w->first + w->count++) % w->capacity] = (task){run, user};
        pthread_cond_signal(&w->has_task);
    }
    pthread_mutex_unlock(&w->mutex);
    return has_space;
}
