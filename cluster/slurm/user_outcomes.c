#include "base/status.h"
#include "slurm/user_records.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_USERS = 1 << 16, LINE_BYTES = 256 };
static const double half_life_s = 14 * 86400.0;

/* GPU-second sums, decayed to the time `at_s`. */
typedef struct record {
    uint32_t user;
    double predicted, excess; /* all jobs; for jobs that ran longer, the time beyond the prediction */
    double at_s;
} record;

struct sl_outcomes {
    pthread_mutex_t *mutex; /* separate, because reading functions take the record as constant */
    record *records;        /* sorted by user */
    size_t count, capacity;
};

sl_outcomes *sl_outcomes_create(void)
{
    sl_outcomes *o = calloc(1, sizeof *o);
    if (o == NULL) return NULL;
    o->mutex = malloc(sizeof *o->mutex);
    if (o->mutex == NULL) {
        free(o);
        return NULL;
    }
    pthread_mutex_init(o->mutex, NULL);
    return o;
}

void sl_outcomes_destroy(sl_outcomes *o)
{
    if (o == NULL) return;
    pthread_mutex_destroy(o->mutex);
    free(o->mutex);
    free(o->records);
    free(o);
}

/* Returns the position for the user's record, existing or new. */
static size_t position(const sl_outcomes *o, uint32_t user)
{
    size_t low = 0, high = o->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (o->records[middle].user < user)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool has(const sl_outcomes *o, size_t at, uint32_t user) { return at < o->count && o->records[at].user == user; }

static double decay(const record *r, double now_s) { return exp2(-fmax(now_s - r->at_s, 0) / half_life_s); }

/* Finds or inserts the user's record; NULL if there is no room. */
static record *open_record(sl_outcomes *o, uint32_t user)
{
    size_t at = position(o, user);
    if (has(o, at, user)) return &o->records[at];
    if (o->count == MOST_USERS) return NULL;
    if (o->count == o->capacity) {
        size_t capacity = o->capacity > 0 ? 2 * o->capacity : 64;
        record *grown = realloc(o->records, capacity * sizeof *grown);
        if (grown == NULL) return NULL;
        o->records = grown;
        o->capacity = capacity;
    }
    memmove(&o->records[at + 1], &o->records[at], (o->count - at) * sizeof *o->records);
    o->records[at] = (record){.user = user};
    o->count++;
    return &o->records[at];
}

void sl_outcomes_add(sl_outcomes *o, uint32_t user, double predicted_s, double actual_s, double gpus, bool is_complete,
                     double now_s)
{
    bool is_valid = predicted_s > 0 && actual_s > 0 && gpus > 0 && isfinite(predicted_s * actual_s * gpus);
    if (!is_valid || (!is_complete && actual_s <= predicted_s)) return;
    pthread_mutex_lock(o->mutex);
    record *r = open_record(o, user);
    if (r != NULL) {
        double kept = decay(r, now_s);
        r->predicted = r->predicted * kept + fmin(predicted_s, actual_s) * gpus;
        r->excess = r->excess * kept + fmax(actual_s - predicted_s, 0) * gpus;
        r->at_s = now_s;
    }
    pthread_mutex_unlock(o->mutex);
}

/* Everybody starts with two GPU-hours of honest work, so that one short job that waits for data does not count, and a
 * record fades. */
double sl_outcomes_understatement(const sl_outcomes *o, uint32_t user, double now_s)
{
    const double assumed = 7200;
    double factor = 1;
    pthread_mutex_lock(o->mutex);
    size_t at = position(o, user);
    if (has(o, at, user)) {
        const record *r = &o->records[at];
        double kept = decay(r, now_s);
        factor = 1 + r->excess * kept / (r->predicted * kept + assumed);
    }
    pthread_mutex_unlock(o->mutex);
    return factor;
}

static const char title[] = "mdot-outcomes 1\n";

static mdot_status read_lines(FILE *file, const char *path, sl_outcomes *to, mdot_error *err)
{
    char line[LINE_BYTES];
    if (fgets(line, sizeof line, file) == NULL || strcmp(line, title) != 0)
        return mdot_fail(err, MDOT_MALFORMED, "%s:1: not a record of outcomes; remove the file to start a new one",
                         path);
    for (int number = 2; fgets(line, sizeof line, file) != NULL; number++) {
        record r;
        char end;
        bool is_right =
            sscanf(line, "%" SCNu32 " %lf %lf %lf%c", &r.user, &r.predicted, &r.excess, &r.at_s, &end) == 5 &&
            end == '\n' && r.predicted >= 0 && r.excess >= 0 && isfinite(r.predicted + r.excess + r.at_s);
        if (!is_right)
            return mdot_fail(err, MDOT_MALFORMED, "%s:%d: expected USER PREDICTED EXCESS TIME", path, number);
        record *place = open_record(to, r.user);
        if (place == NULL) return BS_OUT_OF_MEMORY(err, "the users of %s up to line %d", path, number);
        *place = r;
    }
    return ferror(file) != 0 ? mdot_fail(err, MDOT_IO, "%s: %s", path, strerror(errno)) : MDOT_OK;
}

mdot_status sl_outcomes_load(sl_outcomes *o, const char *path, mdot_error *err)
{
    struct stat info;
    int descriptor = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
    if (descriptor < 0)
        return mdot_fail(err, errno == ENOENT ? MDOT_NOT_FOUND : MDOT_IO, "%s: %s", path, strerror(errno));
    bool is_regular = fstat(descriptor, &info) == 0 && S_ISREG(info.st_mode);
    FILE *file = is_regular ? fdopen(descriptor, "r") : NULL;
    if (file == NULL) {
        close(descriptor);
        return mdot_fail(err, MDOT_IO, "%s: not a regular file", path);
    }
    sl_outcomes read = {.records = NULL};
    mdot_status status = read_lines(file, path, &read, err);
    fclose(file);
    if (status != MDOT_OK) {
        free(read.records);
        return status;
    }
    pthread_mutex_lock(o->mutex);
    free(o->records);
    o->records = read.records;
    o->count = read.count;
    o->capacity = read.capacity;
    pthread_mutex_unlock(o->mutex);
    return MDOT_OK;
}

/* Copies the records, so that no thread waits for the file system; *out_records is NULL if there are none. */
static mdot_status copy_records(const sl_outcomes *o, record **out_records, size_t *out_count, mdot_error *err)
{
    pthread_mutex_lock(o->mutex);
    size_t count = o->count;
    record *records = count > 0 ? malloc(count * sizeof *records) : NULL;
    if (records != NULL) memcpy(records, o->records, count * sizeof *records);
    pthread_mutex_unlock(o->mutex);
    if (count > 0 && records == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    *out_records = records;
    *out_count = count;
    return MDOT_OK;
}

static mdot_status write_records(const record *records, size_t count, const char *path, mdot_error *err)
{
    char temporary[4096];
    if (snprintf(temporary, sizeof temporary, "%s.new", path) >= (int)sizeof temporary)
        return mdot_fail(err, MDOT_INVALID_ARGUMENT, "%s: the path is too long", path);
    unlink(temporary); /* left by a killed process; O_EXCL below follows no link */
    int descriptor = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    FILE *file = descriptor >= 0 ? fdopen(descriptor, "w") : NULL;
    if (file == NULL) {
        if (descriptor >= 0) close(descriptor);
        return mdot_fail(err, MDOT_IO, "%s: %s", temporary, strerror(errno));
    }
    fputs(title, file);
    for (size_t i = 0; i < count; i++) {
        const record *r = &records[i];
        fprintf(file, "%" PRIu32 " %.9g %.9g %.9g\n", r->user, r->predicted, r->excess, r->at_s);
    }
    bool is_written = fflush(file) == 0 && ferror(file) == 0 && fsync(fileno(file)) == 0;
    if (fclose(file) != 0 || !is_written || rename(temporary, path) != 0) {
        mdot_fail(err, MDOT_IO, "%s: %s", path, strerror(errno));
        unlink(temporary);
        return MDOT_IO;
    }
    return MDOT_OK;
}

mdot_status sl_outcomes_save(const sl_outcomes *o, const char *path, mdot_error *err)
{
    record *records = NULL;
    size_t count = 0;
    mdot_status status = copy_records(o, &records, &count, err);
    if (status == MDOT_OK) status = write_records(records, count, path, err);
    free(records);
    return status;
}
