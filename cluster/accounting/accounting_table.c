#include "accounting/accounting.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

static const char *const field_names[AC_FIELD_COUNT] = {
#define FIELD_NAME(name) #name,
    AC_FIELDS(FIELD_NAME)
#undef FIELD_NAME
};

/* Fields whose text users choose, and that may contain "|". */
static const char *const free_fields[] = {"JobName", "Comment", "AdminComment", "SystemComment", "SubmitLine",
                                          "WorkDir", NULL};

#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
static bool
refuse(ac_table *table, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(table->reason, sizeof table->reason, format, arguments);
    va_end(arguments);
    return false;
}

/* Returns the next line that is not empty, or NULL. *out_has_zero: it contains a zero byte, and is cut there. */
static char *take_line(ac_table *table, bool *out_has_zero)
{
    while (table->next < table->end) {
        char *line = table->next, *end = memchr(line, '\n', (size_t)(table->end - line));
        if (end == NULL) end = table->end;
        *out_has_zero = memchr(line, '\0', (size_t)(end - line)) != NULL;
        *end = '\0';
        if (end > line && end[-1] == '\r') end[-1] = '\0';
        table->next = end + 1;
        table->line++;
        if (*line != '\0' || *out_has_zero) return line;
    }
    return NULL;
}

static bool split(ac_table *table, char *line)
{
    table->cell_count = 0;
    for (char *cell = line;;) {
        if (table->cell_count == AC_MAX_CELLS) return refuse(table, "more than %d fields", AC_MAX_CELLS);
        table->cell[table->cell_count++] = cell;
        cell = strchr(cell, '|');
        if (cell == NULL) return true;
        *cell++ = '\0';
    }
}

/* Puts the separators back between the cells of the free field. */
static void join_surplus(ac_table *table)
{
    size_t surplus = table->cell_count - table->column_count, first = (size_t)table->free_column;
    for (size_t i = 0; i < surplus; i++) table->cell[first + i + 1][-1] = '|';
    memmove(&table->cell[first + 1], &table->cell[first + 1 + surplus],
            (table->column_count - first - 1) * sizeof *table->cell);
    table->cell_count = table->column_count;
}

static void find_columns(ac_table *table)
{
    int free_count = 0;
    table->column_count = table->cell_count; /* the empty cell at the end of `sacct -p` counts, in each line */
    for (int f = 0; f < AC_FIELD_COUNT; f++) {
        table->column_of[f] = AC_ABSENT;
        for (size_t i = 0; i < table->cell_count; i++)
            if (strcasecmp(table->cell[i], field_names[f]) == 0) table->column_of[f] = (int)i;
    }
    table->free_column = AC_ABSENT;
    for (size_t i = 0; i < table->cell_count; i++)
        for (const char *const *name = free_fields; *name != NULL; name++)
            if (strcasecmp(table->cell[i], *name) == 0 && free_count++ == 0) table->free_column = (int)i;
    if (free_count != 1) table->free_column = AC_ABSENT;
}

/* Skips a byte order mark, which other programs write before UTF-8. */
static const char *skip_mark(const char *text) { return strncmp(text, "\xef\xbb\xbf", 3) == 0 ? text + 3 : text; }

bool ac_is_accounting(const char *text)
{
    static const char id[] = "JobID";
    text = skip_mark(text);
    size_t length = strcspn(text, "\r\n");
    if (memchr(text, '|', length) == NULL || memchr(text, ',', length) != NULL) return false;
    for (const char *cell = text; cell < text + length; cell += strcspn(cell, "|\r\n") + 1)
        if (strcspn(cell, "|\r\n") == sizeof id - 1 && strncasecmp(cell, id, sizeof id - 1) == 0) return true;
    return false;
}

mdot_status ac_table_open(const char *name, char *text, size_t size_bytes, ac_table *out_table, mdot_error *err)
{
    bool has_zero = false;
    *out_table = (ac_table){.next = text + (skip_mark(text) - text), .end = text + size_bytes};
    char *line = take_line(out_table, &has_zero);
    if (line == NULL) return mdot_fail(err, MDOT_MALFORMED, "%s: no accounting: it is empty", name);
    if (!split(out_table, line)) return mdot_fail(err, MDOT_MALFORMED, "%s: %s", name, out_table->reason);
    find_columns(out_table);
    if (out_table->column_of[AC_JobID] == AC_ABSENT || out_table->column_of[AC_State] == AC_ABSENT)
        return mdot_fail(err, MDOT_MALFORMED,
                         "%s:%zu: the first line names no fields JobID and State between \"|\"; use sacct -P "
                         "--format=JobID,JobName,User,Account,Partition,Cluster,State,Submit,Start,End,Elapsed,"
                         "Timelimit,ReqTRES,AllocTRES,NNodes,ExitCode",
                         name, out_table->line);
    return MDOT_OK;
}

static const char *field(const ac_table *table, ac_field f)
{
    return table->column_of[f] != AC_ABSENT ? table->cell[table->column_of[f]] : "";
}

/* Returns the first field unless it is empty, else the second. */
static ac_field either(const ac_table *table, ac_field first, ac_field second)
{
    return *field(table, first) != '\0' ? first : second;
}

static bool accept(ac_table *table, bool is_read, ac_field f)
{
    return is_read || refuse(table, "%s is \"%.60s\", which is not understood", field_names[f], field(table, f));
}

static bool read_times(ac_table *table, mdot_store_outcome *job)
{
    ac_field elapsed = either(table, AC_ElapsedRaw, AC_Elapsed);
    ac_field limit = either(table, AC_TimelimitRaw, AC_Timelimit);
    return accept(table, ac_read_time(field(table, AC_Submit), &job->submitted_at), AC_Submit) &&
           accept(table, ac_read_time(field(table, AC_Start), &job->started_at), AC_Start) &&
           accept(table, ac_read_time(field(table, AC_End), &job->ended_at), AC_End) &&
           accept(table, ac_read_duration(field(table, elapsed), &job->elapsed_s), elapsed) &&
           accept(table, ac_read_limit(field(table, limit), &job->limit_s), limit);
}

/* GPUs come from the first field with any; the type may come from a later one. */
static bool read_gpus(ac_table *table, mdot_store_outcome *job)
{
    static const ac_field fields[] = {AC_AllocTRES, AC_ReqTRES, AC_AllocGRES};
    const char *found = NULL;
    size_t found_length = 0;
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        int64_t count;
        const char *type, *text = field(table, fields[i]);
        size_t length;
        bool is_read = fields[i] == AC_AllocGRES ? ac_read_gres(text, &count, &type, &length)
                                                 : ac_read_gpus(text, &count, &type, &length);
        if (!accept(table, is_read, fields[i])) return false;
        if (job->gpu_count == 0) job->gpu_count = count;
        if (found == NULL) found = type, found_length = length;
    }
    snprintf(table->gpu, sizeof table->gpu, "%.*s", (int)found_length, found != NULL ? found : "");
    job->gpu = table->gpu;
    return true;
}

/* Digits, and an array task ("12_3") or a heterogeneous job's part ("12+1"). */
static bool is_job_id(const char *text)
{
    size_t digits = strspn(text, "0123456789");
    const char *rest = text + digits;
    if (digits == 0) return false;
    if (*rest == '\0') return true;
    if (*rest != '+' && *rest != '_') return false;
    rest++;
    return *rest != '\0' && rest[strspn(rest, "0123456789")] == '\0';
}

static bool read_job(ac_table *table, mdot_store_outcome *job)
{
    ac_field nodes = either(table, AC_AllocNodes, AC_NNodes);
    *job = (mdot_store_outcome){.struct_size = sizeof *job,
                                .cluster = field(table, AC_Cluster),
                                .job_id = field(table, AC_JobID),
                                .name = field(table, AC_JobName),
                                .user = field(table, AC_User),
                                .account = field(table, AC_Account),
                                .partition = field(table, AC_Partition),
                                .state = field(table, AC_State)};
    return accept(table, is_job_id(job->job_id), AC_JobID) &&
           accept(table, ac_read_state(job->state, &job->outcome), AC_State) && read_times(table, job) &&
           read_gpus(table, job) && accept(table, ac_read_count(field(table, nodes), &job->node_count), nodes) &&
           accept(table, ac_read_exit(field(table, AC_ExitCode), &job->exit_code), AC_ExitCode);
}

ac_item ac_table_next(ac_table *table, mdot_store_outcome *out_job)
{
    bool has_zero = false;
    char *line = take_line(table, &has_zero);
    if (line == NULL) return AC_END;
    if (has_zero) {
        refuse(table, "the line has a zero byte");
        return AC_FAULT;
    }
    if (!split(table, line)) return AC_FAULT;
    if (table->cell_count > table->column_count && table->free_column != AC_ABSENT) join_surplus(table);
    if (table->cell_count != table->column_count) {
        refuse(table, "%zu fields where the first line names %zu", table->cell_count, table->column_count);
        return AC_FAULT;
    }
    if (strpbrk(field(table, AC_JobID), ".[") != NULL) return AC_STEP;
    return read_job(table, out_job) ? AC_JOB : AC_FAULT;
}
