/* store_tables.c — `mdot-store add`, `import` and `export`: tables of measured steps, and Slurm's accounting. */
#include "base/csv.h"
#include "base/file.h"
#include "base/text.h"
#include "base/training/measurements_csv.h"
#include "store/command/store_actions.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { MOST_REPORTED_LINES = 20 };

/* A store that an action fills. An absent one is made under another name and gets its own at the end, so that a failure
 * leaves nothing. */
typedef struct output {
    const char *path;
    char *made; /* NULL: the store was there */
    mdot_store *store;
} output;

/* A message about the made file names the store instead. */
static void name_store(const output *out, mdot_error *err)
{
    const mdot_error named = *err;
    size_t length = out->made != NULL ? strlen(out->made) : 0;
    if (length > 0 && strncmp(named.message, out->made, length) == 0)
        mdot_fail(err, named.status, "%s%s", out->path, named.message + length);
}

static bool begin_output(const char *path, output *out)
{
    struct stat file;
    mdot_error err = {0};
    mdot_status status = MDOT_OK;
    *out = (output){.path = path};
    if (*path != '\0' && lstat(path, &file) != 0 && errno == ENOENT) {
        status = bs_check_output(path, &err);
        if (status == MDOT_OK && asprintf(&out->made, "%s.%ld.new", path, (long)getpid()) < 0)
            status = mdot_fail(&err, MDOT_OUT_OF_MEMORY, NULL);
        if (status == MDOT_OK) unlink(out->made); /* of an earlier process that was killed */
    }
    if (status == MDOT_OK) status = mdot_store_open(out->made != NULL ? out->made : path, NULL, &out->store, &err);
    if (status == MDOT_OK) return true;
    name_store(out, &err);
    free(out->made);
    cli_report(PROGRAM, &err);
    return false;
}

/* Returns `status`, or the reason why the store could not be made. What a failed import has added before stays. */
static mdot_status end_output(output *out, mdot_status status, bool has_failed, mdot_error *err)
{
    mdot_store_info info = MDOT_INIT(mdot_store_info);
    if (out->made != NULL) mdot_store_get_info(out->store, &info, NULL);
    mdot_store_close(out->store);
    if (out->made == NULL) return status;
    if (status != MDOT_OK) name_store(out, err);
    if ((!has_failed || info.row_count + info.outcome_count > 0) && link(out->made, out->path) != 0 &&
        renameat2(AT_FDCWD, out->made, AT_FDCWD, out->path, RENAME_NOREPLACE) != 0)
        status =
            mdot_fail(err, MDOT_IO, "%s: the store cannot be made: %s; repeat the command", out->path, strerror(errno));
    unlink(out->made);
    free(out->made);
    return status;
}

/* Checks a table as `mdot calibrate` does, reads the jobs, and adds the rows. */
static mdot_status add_table(const store_request *r, mdot_store *store, const char *path, const char *text, size_t size,
                             mdot_store_import *out, mdot_error *err)
{
    measured_steps steps = {0};
    mdot_status status = measured_parse(PROGRAM, path, text, size, r->quiet, &steps, err);
    if (status == MDOT_OK) status = mdot_store_import_csv(store, text, size, path, steps.jobs, steps.count, out, err);
    measured_free(&steps);
    return status;
}

/* Writes a table of one row, whose date is now unless a cell has it; false after a usage error. */
static bool write_row(FILE *stream, char **cells, int count)
{
    static const char date[] = "measured_at=";
    bool has_date = false;
    for (int i = 0; i < count; i++) {
        const char *equals = strchr(cells[i], '=');
        if (equals == NULL || equals == cells[i] || strpbrk(cells[i], "\r\n") != NULL) {
            cli_usage_error(PROGRAM, "expected COLUMN=VALUE, for example gpu=A100, not \"%s\"", cells[i]);
            return false;
        }
        has_date |= strncmp(cells[i], date, strlen(date)) == 0;
        if (i > 0) fputc(',', stream);
        bs_csv_write(stream, cells[i], (size_t)(equals - cells[i]));
    }
    fputs(has_date ? "\n" : ",measured_at\n", stream);
    for (int i = 0; i < count; i++) {
        const char *value = strchr(cells[i], '=') + 1;
        if (i > 0) fputc(',', stream);
        bs_csv_write_text(stream, value);
    }
    if (!has_date) fprintf(stream, ",%lld", (long long)time(NULL));
    fputc('\n', stream);
    return true;
}

int store_add(const store_request *request, char **operands, int count)
{
    bs_memstream table;
    mdot_error err = {0};
    mdot_store_import counts = MDOT_INIT(mdot_store_import);
    size_t size = 0;
    if (!bs_memstream_open(&table)) {
        cli_message(PROGRAM, "memory ran out");
        return CLI_FAILED;
    }
    bool is_usable = write_row(table.file, operands + 1, count - 1);
    char *text = bs_memstream_close(&table, &size);
    output out;
    bool is_open = is_usable && text != NULL && begin_output(operands[0], &out);
    mdot_status status = MDOT_OK;
    if (is_open) {
        status = add_table(request, out.store, "the columns", text, size, &counts, &err);
        status = end_output(&out, status, status != MDOT_OK, &err);
    }
    free(text);
    if (!is_usable) return CLI_USAGE;
    if (!is_open) return CLI_FAILED;
    return status == MDOT_OK ? CLI_OK : cli_report(PROGRAM, &err);
}

static mdot_status read_stdin(char **out_text, size_t *out_size, mdot_error *err)
{
    bs_memstream memory;
    char part[1 << 14];
    if (!bs_memstream_open(&memory)) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    for (size_t got; (got = fread(part, 1, sizeof part, stdin)) > 0;) fwrite(part, 1, got, memory.file);
    bool failed = ferror(stdin) != 0;
    char *text = bs_memstream_close(&memory, out_size);
    if (failed || text == NULL) {
        free(text);
        return mdot_fail(err, failed ? MDOT_IO : MDOT_OUT_OF_MEMORY, "stdin: it cannot be read");
    }
    *out_text = text;
    return MDOT_OK;
}

/* The first accounting line has "|" between fields. */
static bool is_accounting(const char *text)
{
    size_t length = strcspn(text, "\n");
    return memchr(text, '|', length) != NULL && memchr(text, ',', length) == NULL;
}

typedef struct malformed_lines {
    const char *path;
    size_t count;
} malformed_lines;

static void report_line(void *user, size_t line, const char *reason)
{
    malformed_lines *m = user;
    if (m->count++ < MOST_REPORTED_LINES) cli_message(PROGRAM, "%s:%zu: %s", m->path, line, reason);
    if (m->count == MOST_REPORTED_LINES + 1) cli_message(PROGRAM, "%s: more malformed lines follow", m->path);
}

static mdot_status import_accounting(const store_request *r, mdot_store *store, const char *path, const char *text,
                                     size_t size, mdot_store_import *out, mdot_error *err)
{
    malformed_lines lines = {.path = path};
    mdot_store_accounting options = {
        .struct_size = sizeof options, .name = path, .cluster = r->cluster, .malformed = report_line, .user = &lines};
    return mdot_store_import_sacct(store, text, size, &options, out, err);
}

static mdot_status import_file(const store_request *r, mdot_store *store, const char *operand, bool *io_malformed,
                               mdot_error *err)
{
    bool is_stdin = strcmp(operand, "-") == 0;
    const char *path = is_stdin ? "stdin" : operand;
    char *text = NULL;
    size_t size = 0;
    mdot_store_import counts = MDOT_INIT(mdot_store_import);
    mdot_status status =
        is_stdin ? read_stdin(&text, &size, err) : bs_read_file(operand, (unsigned char **)&text, &size, err);
    if (status != MDOT_OK) return status;
    bool slurm = is_accounting(text);
    status = slurm ? import_accounting(r, store, path, text, size, &counts, err)
                   : add_table(r, store, path, text, size, &counts, err);
    free(text);
    if (status != MDOT_OK) return status;
    cli_text name;
    printf("  %s: %s added, %zu known", cli_printable(&name, path),
           store_count_of(counts.added_count, slurm ? "outcome" : "row").text, counts.known_count);
    if (slurm)
        printf(", %zu updated, %s skipped, %s malformed", counts.updated_count,
               store_count_of(counts.step_count, "step").text, store_count_of(counts.malformed_count, "line").text);
    printf("\n");
    *io_malformed |= counts.malformed_count > 0;
    return MDOT_OK;
}

int store_import(const store_request *request, char **operands, int count)
{
    mdot_error err = {0};
    bool is_malformed = false;
    output out;
    if (!begin_output(operands[0], &out)) return CLI_FAILED;
    mdot_status status = MDOT_OK;
    for (int i = 1; status == MDOT_OK && i < count; i++)
        status = import_file(request, out.store, operands[i], &is_malformed, &err);
    status = end_output(&out, status, status != MDOT_OK || is_malformed, &err);
    if (status != MDOT_OK) cli_report(PROGRAM, &err);
    return cli_finish(PROGRAM, status == MDOT_OK && !is_malformed ? CLI_OK : CLI_FAILED);
}

/* The folder of the jobs as the table names it: relative to the table's folder where it lies below. */
static const char *folder_in_table(const char *folder, const char *table)
{
    const char *slash = table != NULL ? strrchr(table, '/') : NULL;
    size_t length = slash != NULL ? (size_t)(slash + 1 - table) : 0;
    return length > 0 && strncmp(folder, table, length) == 0 ? folder + length : folder;
}

static mdot_status write_folder(mdot_store *store, const char *folder, mdot_error *err)
{
    if (mkdir(folder, 0777) != 0 && errno != EEXIST)
        return mdot_fail(err, MDOT_IO, "%s: cannot make the folder: %s", folder, strerror(errno));
    return store_write_jobs(store, folder, err);
}

int store_export(const store_request *request, char **operands, int count)
{
    mdot_error err = {0};
    mdot_store_filter filter;
    if (!store_filter(request, &filter)) return CLI_USAGE;
    char *absolute = NULL, *text = NULL;
    size_t size = 0;
    mdot_store *store = store_open_to_read(operands[0]);
    if (store == NULL) return CLI_FAILED;
    mdot_store_export options = {
        .struct_size = sizeof options, .flags = request->plain ? MDOT_STORE_EXPORT_PLAIN : 0, .filter = &filter};
    mdot_status status = MDOT_OK;
    if (request->jobs != NULL) {
        status = write_folder(store, request->jobs, &err);
        options.job_folder = folder_in_table(request->jobs, request->output);
        /* A path that is relative to the working folder would be read relative to the table. */
        if (status == MDOT_OK && options.job_folder == request->jobs && request->output != NULL &&
            *request->jobs != '/' && strchr(request->output, '/') != NULL) {
            absolute = realpath(request->jobs, NULL);
            if (absolute != NULL) options.job_folder = absolute;
        }
    }
    if (status == MDOT_OK) status = mdot_store_export_csv(store, &options, &text, &size, &err);
    if (status == MDOT_OK && request->output != NULL) status = bs_write_file(request->output, text, size, &err);
    if (status == MDOT_OK && request->output == NULL) fwrite(text, 1, size, stdout);
    mdot_store_free(text);
    mdot_store_close(store);
    free(absolute);
    return cli_finish(PROGRAM, status == MDOT_OK ? CLI_OK : cli_report(PROGRAM, &err));
}
