/* model.c — see model.h. */
#include "service/model.h"

#include "base/file.h"
#include "base/training/job_argument.h"
#include "service/gpu_table.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* ---- A predictor and its contexts -------------------------------------------------------------------------------- */

struct sv_predictor {
    mdot_predictor *predictor;
    mdot_predictor_info info;
    pthread_mutex_t mutex;
    pthread_cond_t is_free;
    mdot_context **contexts; /* the free ones */
    size_t free_count, count;
};

static void close_predictor(sv_predictor *p)
{
    if (p == NULL) return;
    for (size_t i = 0; i < p->free_count; i++) mdot_context_destroy(p->contexts[i]);
    free(p->contexts);
    mdot_predictor_close(p->predictor);
    pthread_cond_destroy(&p->is_free);
    pthread_mutex_destroy(&p->mutex);
    free(p);
}

static mdot_status open_predictor(const char *path, size_t threads, sv_predictor **out, mdot_error *err)
{
    sv_predictor *p = calloc(1, sizeof *p);
    if (p == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    pthread_mutex_init(&p->mutex, NULL);
    pthread_cond_init(&p->is_free, NULL);
    p->contexts = calloc(threads, sizeof *p->contexts);
    mdot_context *first = NULL;
    mdot_status status = p->contexts != NULL ? predict_open_model(path, NULL, &p->predictor, &first, err)
                                             : mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    if (first != NULL) p->contexts[p->free_count++] = first;
    for (size_t i = 1; status == MDOT_OK && i < threads; i++) {
        status = mdot_context_create(p->predictor, &p->contexts[i], err);
        if (status == MDOT_OK) p->free_count++;
    }
    p->count = p->free_count;
    p->info = MDOT_INIT(mdot_predictor_info);
    if (status == MDOT_OK) status = mdot_predictor_get_info(p->predictor, &p->info);
    if (status == MDOT_OK)
        *out = p;
    else
        close_predictor(p);
    return status;
}

const mdot_predictor_info *sv_predictor_info(const sv_predictor *p) { return &p->info; }

mdot_context *sv_predictor_borrow(sv_predictor *p)
{
    pthread_mutex_lock(&p->mutex);
    while (p->free_count == 0) pthread_cond_wait(&p->is_free, &p->mutex);
    mdot_context *context = p->contexts[--p->free_count];
    pthread_mutex_unlock(&p->mutex);
    return context;
}

size_t sv_predictor_borrow_more(sv_predictor *p, mdot_context **out, size_t count)
{
    size_t got = 0;
    pthread_mutex_lock(&p->mutex);
    while (got < count && p->free_count > p->count / 2) out[got++] = p->contexts[--p->free_count];
    pthread_mutex_unlock(&p->mutex);
    return got;
}

void sv_predictor_return(sv_predictor *p, mdot_context *context)
{
    pthread_mutex_lock(&p->mutex);
    p->contexts[p->free_count++] = context;
    pthread_cond_signal(&p->is_free);
    pthread_mutex_unlock(&p->mutex);
}

/* ---- The model --------------------------------------------------------------------------------------------------- */

static mdot_status load_calibration(sv_model *m, const char *path, mdot_error *err)
{
    unsigned char *bytes = NULL;
    size_t size = 0;
    mdot_calibration_info info = MDOT_INIT(mdot_calibration_info);
    mdot_status status = predict_load_calibration(path, sv_predictor_info(m->predictor)->name, &m->calibration, err);
    if (status == MDOT_OK) status = mdot_calibration_get_info(m->calibration, &info);
    if (status == MDOT_OK) status = bs_read_file(path, &bytes, &size, err);
    if (status == MDOT_OK) sv_sha256(bytes, size, m->calibration_digest);
    m->calibrated_rows = info.row_count;
    free(bytes);
    return status;
}

mdot_status sv_model_load(const sv_sources *sources, size_t threads, sv_model **out, mdot_error *err)
{
    static atomic_ullong generations;
    sv_model *m = calloc(1, sizeof *m);
    if (m == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    atomic_init(&m->references, 1);
    m->generation = atomic_fetch_add(&generations, 1) + 1;
    mdot_status status = open_predictor(sources->predictor, threads, &m->predictor, err);
    if (status == MDOT_OK && sources->shadow != NULL) status = open_predictor(sources->shadow, 1, &m->shadow, err);
    if (status == MDOT_OK) status = sv_gpu_table_load(&m->gpus, sources->gpus, err);
    if (status == MDOT_OK && sources->calibration != NULL) status = load_calibration(m, sources->calibration, err);
    if (status == MDOT_OK)
        *out = m;
    else
        sv_model_release(m);
    return status;
}

void sv_model_retain(sv_model *m) { atomic_fetch_add(&m->references, 1); }

void sv_model_release(sv_model *m)
{
    if (m == NULL || atomic_fetch_sub(&m->references, 1) > 1) return;
    mdot_calibration_destroy(m->calibration);
    close_predictor(m->predictor);
    close_predictor(m->shadow);
    sv_gpu_table_free(&m->gpus);
    free(m);
}
