#include "slurm/site.h"

#include "base/status.h"
#include "base/text.h"
#include "slurm/request.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct reader {
    const char *path;
    int line;
    mdot_error *err;
} reader;

#define refuse(r, ...) refuse_at(r, MDOT_MALFORMED, __VA_ARGS__)
__attribute__((format(printf, 3, 4))) static mdot_status refuse_at(const reader *r, mdot_status status,
                                                                   const char *format, ...)
{
    char reason[512];
    va_list args;
    va_start(args, format);
    vsnprintf(reason, sizeof reason, format, args);
    va_end(args);
    return mdot_fail(r->err, status, "%s:%d: %s", r->path, r->line, reason);
}

bool sl_read_time_s(const char *text, double *out_s)
{
    if (strcasecmp(text, "INFINITE") == 0 || strcasecmp(text, "UNLIMITED") == 0) return *out_s = INFINITY, true;
    double part[3], days = 0;
    int count = 0;
    bool has_days = false;
    for (const char *cursor = text; count < 3; cursor++) {
        if (!isdigit((unsigned char)*cursor)) return false;
        char *end;
        part[count] = (double)strtoul(cursor, &end, 10);
        cursor = end;
        if (*cursor == '-' && count == 0 && !has_days) {
            days = part[0];
            has_days = true;
            continue;
        }
        count++;
        if (*cursor == '\0') break;
        if (*cursor != ':' || count == 3) return false;
    }
    double unit = has_days || count == 3 ? 3600 : 60;
    *out_s = 86400 * days;
    for (int i = 0; i < count; i++, unit /= 60) *out_s += unit * part[i];
    return true;
}

static mdot_status read_number(const reader *r, const char *key, const char *text, double minimum, double maximum,
                               double *out)
{
    const char *end;
    double value = bs_number_read(text, &end);
    if (end == text || *end != '\0' || !(value >= minimum && value <= maximum))
        return refuse(r, "%s must be a number from %g to %g, not \"%.40s\"", key, minimum, maximum, text);
    *out = value;
    return MDOT_OK;
}

static mdot_status read_time(const reader *r, const char *key, const char *text, double *out_s)
{
    return sl_read_time_s(text, out_s)
               ? MDOT_OK
               : refuse(r, "%s must be a time, for example 90, 1:30:00 or 2-12, not \"%.40s\"", key, text);
}

static mdot_status read_word(const reader *r, const char *key, const char *text, const char *const *words, int *out)
{
    for (*out = 0; words[*out] != NULL; ++*out)
        if (strcasecmp(words[*out], text) == 0) return MDOT_OK;
    return refuse(r, "%s is \"%.40s\"", key, text);
}

static mdot_status read_text(const reader *r, const char *key, const char *text, char *out, size_t bytes)
{
    if (strlen(text) >= bytes) return refuse(r, "%s has more than %zu characters", key, bytes - 1);
    strcpy(out, text);
    return MDOT_OK;
}

static mdot_status read_site_key(const reader *r, const char *key, const char *value, sl_site *site)
{
    static const char *const choices[] = {"no", "time", "cost", NULL}, *const orders[] = {"time", "service", NULL},
                             *const no_yes[] = {"no", "yes", NULL};
    int word = 0;
    double number = 0;
    mdot_status status = MDOT_OK;
    if (strcasecmp(key, "Predictor") == 0) return read_text(r, key, value, site->predictor, sizeof site->predictor);
    if (strcasecmp(key, "Calibration") == 0)
        return read_text(r, key, value, site->calibration, sizeof site->calibration);
    if (strcasecmp(key, "Outcomes") == 0) return read_text(r, key, value, site->outcomes, sizeof site->outcomes);
    if (strcasecmp(key, "History") == 0) return read_text(r, key, value, site->history, sizeof site->history);
    if (strcasecmp(key, "Trees") == 0) return read_text(r, key, value, site->trees, sizeof site->trees);
    if (strcasecmp(key, "UserMilliseconds") == 0) return read_number(r, key, value, 0, 60000, &site->user_ms);
    if (strcasecmp(key, "Quantile") == 0) return read_number(r, key, value, .01, .999, &site->quantile);
    if (strcasecmp(key, "Margin") == 0) return read_number(r, key, value, .1, 100, &site->margin);
    if (strcasecmp(key, "MaxMilliseconds") == 0) return read_number(r, key, value, 0, 1000, &site->patience_ms);
    if (strcasecmp(key, "Startup") == 0) return read_time(r, key, value, &site->startup_s);
    if (strcasecmp(key, "PriorityWeight") == 0) return read_number(r, key, value, 0, 1e9, &site->priority_weight);
    if (strcasecmp(key, "PriorityShortest") == 0) return read_time(r, key, value, &site->shortest_s);
    if (strcasecmp(key, "PriorityLongest") == 0) return read_time(r, key, value, &site->longest_s);
    if (strcasecmp(key, "MaxJobBytes") == 0) {
        status = read_number(r, key, value, 1, SL_MAX_JOB_BYTES, &number);
        if (status == MDOT_OK) site->most_job_bytes = (size_t)number;
    } else if (strcasecmp(key, "MaxOperators") == 0) {
        status = read_number(r, key, value, 1, 1e9, &number);
        if (status == MDOT_OK) site->most_work = (size_t)number;
    } else if (strcasecmp(key, "PriorityOrder") == 0) {
        status = read_word(r, key, value, orders, &word);
        if (status == MDOT_OK) site->order = (sl_order)word;
    } else if (strcasecmp(key, "Choose") == 0) {
        status = read_word(r, key, value, choices, &word);
        if (status == MDOT_OK) site->choice = (sl_choice)word;
    } else if (strcasecmp(key, "LimitDoubtful") == 0) {
        status = read_word(r, key, value, no_yes, &word);
        if (status == MDOT_OK) site->limits_doubtful = word != 0;
    } else if (strcasecmp(key, "LimitByHistory") == 0) {
        status = read_word(r, key, value, no_yes, &word);
        if (status == MDOT_OK) site->limits_by_history = word != 0;
    } else {
        return refuse(r, "%.40s is not a setting", key);
    }
    return status;
}

static mdot_status read_place_key(const reader *r, const char *key, const char *value, sl_place *place)
{
    if (strcasecmp(key, "Partition") == 0) return read_text(r, key, value, place->partition, sizeof place->partition);
    if (strcasecmp(key, "Price") == 0) return read_number(r, key, value, 1e-6, 1e9, &place->price);
    if (strcasecmp(key, "MaxTime") == 0) return read_time(r, key, value, &place->most_s);
    if (strcasecmp(key, "Gpu") == 0) {
        mdot_gpu gpu = MDOT_INIT(mdot_gpu);
        mdot_error reason = {0};
        if (mdot_gpu_find(value, &gpu, &reason) != MDOT_OK)
            return refuse_at(r, MDOT_INVALID_ARGUMENT, "%s", reason.message);
        return read_text(r, key, gpu.name, place->gpu, sizeof place->gpu);
    }
    if (strcasecmp(key, "Type") != 0) return refuse(r, "%.40s is not a setting of a Partition", key);
    for (char *c = place->type; strlen(value) < sizeof place->type && *value != '\0'; value++)
        *c++ = (char)tolower((unsigned char)*value);
    return *value == '\0' ? MDOT_OK : refuse(r, "Type has more than %d characters", SL_GRES_TYPE_BYTES - 1);
}

static mdot_status end_place(const reader *r, const sl_place *place, sl_site *site)
{
    if (place->gpu[0] == '\0') return refuse(r, "Partition=%s has no Gpu", place->partition);
    if (!(place->most_s > 0)) return refuse(r, "Partition=%s has MaxTime=0", place->partition);
    if (site->place_count == SL_MAX_PLACES) return refuse(r, "more than %d lines of partitions", SL_MAX_PLACES);
    for (size_t i = 0; i < site->place_count; i++)
        if (strcmp(site->places[i].partition, place->partition) == 0 && strcmp(site->places[i].type, place->type) == 0)
            return refuse(r, "Partition=%s Type=%s occurs twice", place->partition, place->type);
    site->places[site->place_count++] = *place;
    return MDOT_OK;
}

static mdot_status read_line(const reader *r, char *line, sl_site *site)
{
    static const char blanks[] = " \t\r\n";
    sl_place place = {.most_s = INFINITY};
    mdot_status status = MDOT_OK;
    bool is_place = false;
    int count = 0;
    line[strcspn(line, "#")] = '\0';
    char *rest = NULL;
    for (char *word = strtok_r(line, blanks, &rest); word != NULL; word = strtok_r(NULL, blanks, &rest), count++) {
        char *equals = strchr(word, '=');
        if (equals == NULL || equals == word || equals[1] == '\0')
            return refuse(r, "\"%.40s\" must have the form KEY=VALUE", word);
        *equals = '\0';
        is_place |= count == 0 && strcasecmp(word, "Partition") == 0;
        if (!is_place && count > 0) return refuse(r, "%.40s cannot begin a line", word);
        status = is_place ? read_place_key(r, word, equals + 1, &place) : read_site_key(r, word, equals + 1, site);
        if (status != MDOT_OK) return status;
    }
    return is_place ? end_place(r, &place, site) : MDOT_OK;
}

/* Checks multi-line rules. */
static mdot_status check(const reader *r, const sl_site *site)
{
    if (site->predictor[0] != '/') return refuse(r, "Predictor is missing, or is not an absolute path");
    if (site->calibration[0] != '\0' && site->calibration[0] != '/')
        return refuse(r, "Calibration is not an absolute path");
    if (site->outcomes[0] != '\0' && site->outcomes[0] != '/') return refuse(r, "Outcomes is not an absolute path");
    if (site->history[0] != '\0' && site->history[0] != '/') return refuse(r, "History is not an absolute path");
    if (site->trees[0] != '\0' && site->trees[0] != '/') return refuse(r, "Trees is not an absolute path");
    if (site->place_count == 0) return refuse(r, "no Partition line");
    if (!(site->shortest_s > 0 && site->shortest_s < site->longest_s && isfinite(site->longest_s)))
        return refuse(r, "PriorityShortest must be less than PriorityLongest");
    if (!isfinite(site->startup_s)) return refuse(r, "Startup is infinite");
    for (size_t i = 0; site->choice == SL_CHOOSE_COST && i < site->place_count; i++)
        if (site->places[i].price == 0)
            return refuse(r, "Choose=cost requires a Price for Partition=%s", site->places[i].partition);
    return MDOT_OK;
}

/* Opens a regular file. Other kinds are refused without waiting, because the controller would hang in a named pipe. */
static mdot_status open_file(const char *path, FILE **out_file, mdot_error *err)
{
    struct stat s;
    int descriptor = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
    if (descriptor < 0)
        return mdot_fail(err, errno == ENOENT ? MDOT_NOT_FOUND : MDOT_IO, "cannot read %s: %s", path, strerror(errno));
    bool is_regular = fstat(descriptor, &s) == 0 && S_ISREG(s.st_mode);
    FILE *file = is_regular ? fdopen(descriptor, "r") : NULL;
    if (file == NULL) {
        close(descriptor);
        return is_regular ? BS_OUT_OF_MEMORY(err, "%s", path)
                          : mdot_fail(err, MDOT_INVALID_ARGUMENT, "%s is not a regular file", path);
    }
    *out_file = file;
    return MDOT_OK;
}

mdot_status sl_site_read(const char *path, sl_site *out_site, mdot_error *err)
{
    sl_site site = {.most_job_bytes = 128 * 1024,
                    .most_work = 10000,
                    .user_ms = 500,
                    .patience_ms = 20,
                    .quantile = .95,
                    .margin = 1.1,
                    .startup_s = 600,
                    .order = SL_ORDER_SERVICE,
                    .shortest_s = 60,
                    .longest_s = 30 * 86400.0};
    FILE *file = NULL;
    mdot_status status = open_file(path, &file, err);
    if (status != MDOT_OK) return status;
    reader r = {.path = path, .err = err};
    char line[2048];
    while (status == MDOT_OK && fgets(line, sizeof line, file) != NULL) {
        r.line++;
        bool is_whole = strchr(line, '\n') != NULL || feof(file) != 0;
        status = is_whole ? read_line(&r, line, &site) : refuse(&r, "more than %zu characters", sizeof line - 2);
    }
    if (status == MDOT_OK && ferror(file) != 0) status = mdot_fail(err, MDOT_IO, "cannot read %s", path);
    fclose(file);
    if (status == MDOT_OK) status = check(&r, &site);
    if (status == MDOT_OK) *out_site = site;
    return status;
}
