/* measurements_csv.c — see measurements_csv.h. Values with commas are quoted, for example "dp=4,tp=2". */
#include "base/training/measurements_csv.h"
#include "base/command/command.h"
#include "base/csv.h"
#include "base/suggest.h"
#include "base/text.h"
#include "base/training/training_options.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct row_request {
    cli_training training; /* must be first: the calls of its options expect it there */
    cli_reading reading;
    int64_t batch;
    const char *gpu;
} row_request;

static const cli_option options[] = {
    {.name = "batch",
     .value = "N",
     .kind = CLI_WHOLE,
     .at = offsetof(row_request, batch),
     .least = 1,
     .most = CLI_MAX_BATCH},
    {.name = "gpu", .value = "NAME", .kind = CLI_TEXT, .at = offsetof(row_request, gpu)},
    CLI_READING_OPTIONS(row_request, reading),
#define TRAINING CLI_OPTION_ROW
#include "runtime/job/configuration.def"
#define CLUSTER CLI_OPTION_ROW
#define GROUP CLI_GROUP_ROW
#include "runtime/job/configuration.def"
};
static const cli_command row_command = {.name = "calibrate", CLI_OPTIONS(options), .option_words = rt_option_words};

/* The header and the current row; or the keys and values of one option, as a row without a line. */
typedef struct table {
    const char *command;
    const char *output; /* file that the command will write, which must not be a job; may be NULL */
    bool quiet;
    bs_csv csv;
    mdot_error *err;
} table;

#define FAIL(t, status, ...) bs_csv_fail(&(t)->csv, (t)->err, status, __VA_ARGS__)

static bool has_column(const table *t, const char *name) { return bs_csv_find(&t->csv, name) != BS_CSV_ABSENT; }

/* Columns that are no options. Besides ms, they are records of the measurement, which a store keeps
 * (docs/reference/formats/store.md). */
static bool is_own_column(const char *name)
{
    static const char *const own[] = {"job",       "ms",          "gib",  "note",   "software", "host",
                                      "predictor", "measured_at", "name", "digest", "row"};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (strcmp(name, own[i]) == 0) return true;
    return false;
}

static const cli_option *find_option(const char *name)
{
    const cli_option *option;
    for (size_t i = 0; (option = cli_option_at(&row_command, i)) != NULL; i++)
        if (strcmp(option->name, name) == 0) return option;
    return NULL;
}

static const char *noun_of(const table *t) { return t->csv.line == 0 ? "key" : "column"; }

static mdot_status check_names(const table *t)
{
    for (int i = 0; i < t->csv.header_count; i++) {
        const char *name = t->csv.header[i];
        if (bs_csv_find(&t->csv, name) < i) return FAIL(t, MDOT_MALFORMED, "%s %.64s appears twice", noun_of(t), name);
        if (is_own_column(name) || (find_option(name) != NULL && strcmp(name, "help") != 0)) continue;
        bs_suggest near = bs_suggest_begin(name);
        for (size_t k = 0; k < row_command.option_count; k++) bs_suggest_add(&near, row_command.options[k].name);
        for (const bs_choice_word *w = rt_option_words; w->word != NULL; w++)
            bs_suggest_add_alias(&near, w->word, w->name);
        return FAIL(t, MDOT_INVALID_ARGUMENT, "there is no %s \"%.64s\"%s", noun_of(t), name,
                    bs_suggest_end(&near).text);
    }
    return MDOT_OK;
}

static mdot_status check_columns(const table *t)
{
    static const char *const needed[] = {"job", "gpu", "batch", "ms"};
    bool has_memory = has_column(t, "gib");
    BS_TRY(check_names(t));
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
        if (!has_column(t, needed[i]) && !(has_memory && strcmp(needed[i], "ms") == 0))
            BS_TRY(FAIL(t, MDOT_INVALID_ARGUMENT, "there is no column %s", needed[i]));
    return MDOT_OK;
}

static bool is_yes(const char *text)
{
    return strcmp(text, "1") == 0 || strcmp(text, "yes") == 0 || strcmp(text, "true") == 0;
}

static bool is_no(const char *text)
{
    return *text == '\0' || strcmp(text, "0") == 0 || strcmp(text, "no") == 0 || strcmp(text, "false") == 0;
}

/* Writes the cells as a command line into `text`. Returns false if a flag has another value than yes or no, or if the
 * text is too long. */
static bool write_line(const table *t, char *text, size_t size, char **argv, int *out_argc)
{
    size_t used = 0;
    int argc = 1;
    argv[0] = text;
    for (int i = 0; i < t->csv.header_count; i++) {
        const char *name = t->csv.header[i], *value = t->csv.field[i];
        const cli_option *option = is_own_column(name) ? NULL : find_option(name);
        if (option == NULL || *value == '\0') continue;
        bool is_flag = option->value == NULL;
        if (is_flag && is_no(value)) continue;
        if (is_flag && !is_yes(value)) return false;
        int length = snprintf(text + used, size - used, is_flag ? "--%s" : "--%s=%s", option->name, value);
        if (length < 0 || (size_t)length >= size - used) return false;
        argv[argc++] = text + used;
        used += (size_t)length + 1;
    }
    *out_argc = argc;
    return true;
}

/* Resolves a path relative to the table's folder; the caller frees it. */
static char *path_from(const char *table_path, const char *path)
{
    const char *slash = strrchr(table_path, '/');
    char *whole = NULL;
    int folder = path[0] == '/' || slash == NULL ? 0 : (int)(slash + 1 - table_path);
    return asprintf(&whole, "%.*s%s", folder, table_path, path) < 0 ? NULL : whole;
}

static const char *cell_of(const table *t, const char *column)
{
    int i = bs_csv_find(&t->csv, column);
    return i != BS_CSV_ABSENT ? t->csv.field[i] : "";
}

static mdot_status find_job(const table *t, row_request *r, measured_steps *m, const mdot_job **out_job)
{
    char *key = NULL;
    if (asprintf(&key, "%s\n%s\n%s\n%s", cell_of(t, "job"), cell_of(t, "dim"), cell_of(t, "frozen"),
                 cell_of(t, "trained")) < 0)
        return FAIL(t, MDOT_OUT_OF_MEMORY, "memory ran out");
    for (size_t i = 0; i < m->owned_count; i++) {
        if (strcmp(m->owned[i].cells, key) != 0) continue;
        free(key);
        *out_job = m->owned[i].job;
        return MDOT_OK;
    }
    mdot_error reason = {0};
    mdot_job *job = NULL;
    char *path = path_from(t->csv.path, cell_of(t, "job"));
    r->reading.quiet = t->quiet;
    r->reading.output = t->output;
    mdot_status status = path == NULL ? mdot_fail(&reason, MDOT_OUT_OF_MEMORY, NULL)
                                      : cli_read_job(t->command, path, &r->reading, &job, &reason);
    free(path);
    if (status != MDOT_OK) {
        free(key);
        return FAIL(t, status, "%s", reason.message);
    }
    m->owned[m->owned_count++] = (measured_job){job, key};
    *out_job = job;
    return MDOT_OK;
}

/* Reads a measured quantity; an empty cell gives 0. `what` is "a time" or "a size". */
static mdot_status read_measured_cell(const table *t, const char *column, const char *what, const char *text,
                                      double *out)
{
    const char *end;
    double value = bs_number_read(text, &end);
    *out = 0;
    if (*text == '\0') return MDOT_OK;
    if (end == text || *end != '\0' || !(value > 0) || !isfinite(value))
        return FAIL(t, MDOT_INVALID_ARGUMENT, "%s is %s above 0, not \"%.40s\"", column, what, text);
    *out = value;
    return MDOT_OK;
}

/* Sets an option, or the members of a group, to the default. */
static void reset(cli_training *t, const char *name)
{
    for (size_t i = 0; i < RT_OPTION_COUNT; i++) {
        bool is_degree = rt_options[i].section == RT_SECTION_DEGREE && strcmp(name, "parallel") == 0;
        if (!is_degree && strcmp(rt_options[i].command, name) != 0) continue;
        t->value[i] = (cli_training_value){0};
        if (rt_options[i].kind == RT_KIND_CHOICE) t->value[i].choice = CLI_NO_CHOICE;
        if (rt_options[i].kind == RT_KIND_VERSION) t->torch_count = 0;
        t->by_parallel[i] = false;
    }
}

/* Reads the cells as options. Options without a cell stay as they are in *io_request; an empty cell is the default. */
static mdot_status read_options(const table *t, row_request *io_request)
{
    enum { LINE_BYTES = 4096 };
    static char text[LINE_BYTES]; /* values that are texts point into it until the row is stored */
    char *argv[BS_CSV_MAX_FIELDS + 2];
    int argc, usage;
    cli_operands operands;
    for (int i = 0; i < t->csv.header_count; i++) reset(&io_request->training, t->csv.header[i]);
    if (!write_line(t, text, sizeof text, argv, &argc))
        return FAIL(t, MDOT_INVALID_ARGUMENT, "a cell is too long, or a flag is neither yes nor no");
    cli_command command = row_command;
    command.name = t->command; /* in messages */
    if (!cli_read_line(&command, argc, argv, io_request, &operands, &usage))
        return FAIL(t, MDOT_INVALID_ARGUMENT, "a value cannot be read");
    if (io_request->training.torch_count > 1)
        return FAIL(t, MDOT_INVALID_ARGUMENT, "a step ran on one version of PyTorch");
    return MDOT_OK;
}

/* Stores the row of `job`, or of the job that the cells name if `job` is NULL. */
static mdot_status store_row(const table *t, row_request *r, const mdot_gpu *default_gpu, const mdot_job *job,
                             measured_steps *m)
{
    if ((r->gpu == NULL && default_gpu == NULL) || r->batch == 0)
        return FAIL(t, MDOT_INVALID_ARGUMENT, "a row needs a gpu and a batch");
    measured_step *step = &m->item[m->count];
    mdot_configuration *c = &step->configuration;
    mdot_error reason = {0};
    mdot_status status = MDOT_OK;
    step->gpu = MDOT_INIT(mdot_gpu);
    if (r->gpu != NULL)
        status = mdot_gpu_find(r->gpu, &step->gpu, &reason);
    else
        step->gpu = *default_gpu;
    if (status != MDOT_OK) return FAIL(t, status, "%s", reason.message);
    status = read_measured_cell(t, "ms", "a time", cell_of(t, "ms"), &step->ms);
    if (status == MDOT_OK) status = read_measured_cell(t, "gib", "a size", cell_of(t, "gib"), &step->gib);
    if (status == MDOT_OK && step->ms == 0 && step->gib == 0)
        status = FAIL(t, MDOT_INVALID_ARGUMENT, "ms is a time above 0, not \"\"; a row needs ms, gib or both");
    if (job != NULL)
        m->jobs[m->count] = job;
    else if (status == MDOT_OK)
        status = find_job(t, r, m, &m->jobs[m->count]);
    if (status != MDOT_OK) return status;
    mdot_job_info info = MDOT_INIT(mdot_job_info);
    mdot_job_get_info(m->jobs[m->count], &info);
    *c = (mdot_configuration){.struct_size = sizeof *c, .batch = r->batch, .gpu_spec = &step->gpu};
    cli_training_apply(&r->training, &info, c);
    c->torch = r->training.torch_count > 0 ? r->training.torch[0] : 0;
    m->count++;
    if (t->csv.line == 0)
        step->place = strdup(t->csv.path);
    else if (asprintf(&step->place, "%s:%zu", t->csv.path, t->csv.line) < 0)
        step->place = NULL;
    return step->place != NULL ? MDOT_OK : mdot_fail(t->err, MDOT_OUT_OF_MEMORY, NULL);
}

static mdot_status read_row(const table *t, measured_steps *m)
{
    row_request r = {0};
    cli_training_begin(&r.training);
    mdot_status status = read_options(t, &r);
    return status == MDOT_OK ? store_row(t, &r, NULL, NULL, m) : status;
}

/* Splits "gpu=A100,batch=64,parallel=dp=4,tp=2,compile" in place. An item without a known key continues the value
 * before it, unless it is a flag. */
static mdot_status split_option(table *t, char *text)
{
    static char yes[] = "yes";
    bs_csv *csv = &t->csv;
    for (char *item = text, *next; item != NULL; item = next) {
        next = strchr(item, ',');
        if (next != NULL) *next++ = '\0';
        char *equals = strchr(item, '=');
        if (equals != NULL) *equals = '\0';
        const cli_option *option = find_option(item);
        const char *last = csv->header_count > 0 ? csv->header[csv->header_count - 1] : "";
        bool is_list = strcmp(last, "parallel") == 0, is_link = strcmp(last, "link") == 0;
        if (option == NULL && !is_own_column(item) && ((is_list && equals != NULL) || (is_link && equals == NULL))) {
            if (equals != NULL) *equals = '=';
            item[-1] = ',';
            continue;
        }
        bool is_flag = option != NULL && option->value == NULL;
        if (*item == '\0' || (equals == NULL && !is_flag))
            return FAIL(t, MDOT_INVALID_ARGUMENT, "\"%.64s\" lacks a value: write KEY=VALUE, for example ms=123", item);
        if (csv->header_count == BS_CSV_MAX_FIELDS)
            return FAIL(t, MDOT_INVALID_ARGUMENT, "more than %d keys", BS_CSV_MAX_FIELDS);
        csv->field[csv->header_count] = equals != NULL ? equals + 1 : yes;
        csv->header[csv->header_count++] = item;
    }
    return MDOT_OK;
}

static mdot_status check_keys(const table *t)
{
    static const char *const of_job[] = {"job", "dim", "frozen", "trained", "note"};
    for (size_t i = 0; i < sizeof of_job / sizeof *of_job; i++)
        if (has_column(t, of_job[i]))
            return FAIL(t, MDOT_INVALID_ARGUMENT, "%s does not belong to a step of the predicted job", of_job[i]);
    return check_names(t);
}

/* Adds a step of `job`. The steps must have space for it. */
static mdot_status read_step(const char *command, const char *text, const measured_defaults *defaults,
                             const mdot_job *job, measured_steps *io_steps, mdot_error *err)
{
    char *copy = strdup(text);
    if (copy == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    table t = {.command = command, .csv.path = "--measured", .err = err};
    row_request r = {.training = *defaults->training, .batch = defaults->batch};
    mdot_status status = split_option(&t, copy);
    if (status == MDOT_OK) status = check_keys(&t);
    if (status == MDOT_OK) status = read_options(&t, &r);
    if (status == MDOT_OK) status = store_row(&t, &r, defaults->gpu, job, io_steps);
    free(copy);
    return status;
}

/* Space for `count` steps. The caller frees it in either case. */
static bool allocate(size_t count, measured_steps *out)
{
    *out = (measured_steps){.jobs = calloc(count, sizeof *out->jobs),
                            .item = calloc(count, sizeof *out->item),
                            .owned = calloc(count, sizeof *out->owned)};
    return out->jobs != NULL && out->item != NULL && out->owned != NULL;
}

mdot_status measured_calibrate(mdot_context *context, const measured_steps *m, size_t first, size_t stride,
                               mdot_calibration **out_calibration, mdot_error *err)
{
    mdot_measurement *rows = calloc(m->count + 1, sizeof *rows);
    size_t count = 0;
    if (rows == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    for (size_t i = first; i < m->count; i += stride)
        rows[count++] = (mdot_measurement){.struct_size = sizeof *rows,
                                           .job = m->jobs[i],
                                           .configuration = &m->item[i].configuration,
                                           .step_ms = m->item[i].ms,
                                           .memory_bytes = m->item[i].gib * CLI_GIB,
                                           .place = m->item[i].place};
    mdot_status status = mdot_calibrate_measured(context, rows, count, out_calibration, err);
    free(rows);
    return status;
}

bool measured_keep_step(const char *command, char *text, void *measured)
{
    measured_options *m = measured;
    if (m->step_count == MEASURED_MAX_STEPS)
        return cli_refuse(command, "--measured can be given at most %d times; use `mdot calibrate` for a table",
                          MEASURED_MAX_STEPS);
    m->steps[m->step_count++] = text;
    return true;
}

mdot_status measured_make_calibration(const char *command, const measured_options *measured,
                                      const measured_defaults *defaults, mdot_predictor *predictor,
                                      mdot_context *context, const mdot_job *job, measured_steps *out_steps,
                                      mdot_calibration **out_calibration, mdot_error *err)
{
    mdot_predictor_info info = MDOT_INIT(mdot_predictor_info);
    *out_steps = (measured_steps){0};
    if (measured->calibration_path != NULL) {
        BS_TRY(mdot_predictor_get_info(predictor, &info));
        return predict_load_calibration(measured->calibration_path, info.name, out_calibration, err);
    }
    if (measured->step_count == 0) return MDOT_OK;
    if (!allocate(measured->step_count, out_steps)) return BS_OUT_OF_MEMORY(err, "--measured");
    for (size_t i = 0; i < measured->step_count; i++)
        BS_TRY(read_step(command, measured->steps[i], defaults, job, out_steps, err));
    return measured_calibrate(context, out_steps, 0, 1, out_calibration, err);
}

static mdot_status read_rows(table *t, measured_steps *m)
{
    bool is_row = true;
    mdot_status status = check_columns(t);
    while (status == MDOT_OK && is_row) {
        status = bs_csv_next(&t->csv, &is_row, t->err);
        if (status == MDOT_OK && is_row) status = read_row(t, m);
    }
    return status;
}

static mdot_status read_table(table *t, measured_steps *m)
{
    const char *path = t->csv.path;
    if (t->csv.line_count > MEASURED_MAX_ROWS)
        return mdot_fail(t->err, MDOT_OUT_OF_RANGE, "%s: more than %d lines", path, MEASURED_MAX_ROWS);
    if (!allocate(t->csv.line_count, m)) return BS_OUT_OF_MEMORY(t->err, "%s", path);
    mdot_status status = read_rows(t, m);
    if (status == MDOT_OK && m->count == 0) status = mdot_fail(t->err, MDOT_MALFORMED, "%s: no measured step", path);
    return status;
}

/* Reads the table that *t has begun with this status. */
static mdot_status finish_reading(table *t, mdot_status status, measured_steps *out)
{
    *out = (measured_steps){0};
    if (status == MDOT_OK) status = read_table(t, out);
    bs_csv_close(&t->csv);
    return status;
}

mdot_status measured_parse(const char *command, const char *path, const char *text, size_t size_bytes, bool quiet,
                           measured_steps *out, mdot_error *err)
{
    table t = {.command = command, .quiet = quiet, .err = err};
    return finish_reading(&t, bs_csv_begin(path, text, size_bytes, NULL, &t.csv, err), out);
}

mdot_status measured_read(const char *command, const char *path, const char *output, bool quiet, measured_steps *out,
                          mdot_error *err)
{
    table t = {.command = command, .output = output, .quiet = quiet, .err = err};
    return finish_reading(&t, bs_csv_open(path, MEASURED_MAX_BYTES, NULL, &t.csv, err), out);
}

void measured_free(measured_steps *m)
{
    for (size_t i = 0; i < m->count; i++) free(m->item[i].place);
    for (size_t i = 0; i < m->owned_count; i++) {
        mdot_job_destroy(m->owned[i].job);
        free(m->owned[i].cells);
    }
    free(m->jobs);
    free(m->item);
    free(m->owned);
}
