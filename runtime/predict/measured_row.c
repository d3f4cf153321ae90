/* measured_row.c — appends a measured step to the table that `mdot calibrate` reads (mdot_record.h).
 *
 * A new table has a column for every training option. configuration.def lists them. A row of an older or of a
 * handwritten table has that table's columns, in its order.
 */
#include "base/csv.h"
#include "base/file.h"
#include "base/text.h"
#include "mdot/mdot.h"
#include "runtime/core/core.h"
#include "runtime/job/configuration.h"
#include "runtime/job/configuration_table.h"
#include "runtime/job/gpus.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_CELLS = RT_OPTION_COUNT + 7, CELL_BYTES = 192, DIGITS = 9 };

#define GIB 1073741824.0

/* A column and its value in the row. */
typedef struct cell {
    const char *column, *value;
    bool is_optional;      /* a table without the column loses no part of the configuration */
    char text[CELL_BYTES]; /* memory of a short value */
} cell;

typedef struct cells {
    cell item[MOST_CELLS];
    size_t count;
} cells;

static const bs_struct_version row_type = BS_SIZED(mdot_measured_row, note);

static cell *add(cells *c, const char *column, const char *value)
{
    cell *new = &c->item[c->count++];
    *new = (cell){.column = column, .value = value};
    if (value == NULL) new->value = new->text;
    return new;
}

/* Appends "KEY=NUMBER", behind a comma if there is an item before it. */
static void add_degree(cell *target, const char *key, double value)
{
    size_t used = strlen(target->text);
    snprintf(target->text + used, sizeof target->text - used, "%s%s=%.0f", used > 0 ? "," : "", key, value);
}

/* A choice that depends on the job is written even if it equals the default. */
static bool is_always_written(size_t option)
{
    return option == RT_OPTION_precision || option == RT_OPTION_layout || option == RT_OPTION_optimizer;
}

static void write_value(cell *target, size_t index, double value)
{
    const rt_option *option = &rt_options[index];
    char digits[BS_NUMBER_BYTES];
    if (!is_always_written(index) && value == option->fallback) return;
    switch (option->kind) {
    case RT_KIND_CHOICE: target->value = option->choices[(size_t)value]; break;
    case RT_KIND_FLAG: target->value = "yes"; break;
    case RT_KIND_VERSION:
        snprintf(target->text, sizeof target->text, RT_VERSION_FORMAT, RT_VERSION_PARTS(value));
        break;
    case RT_KIND_WHOLE:
    case RT_KIND_COUNT: snprintf(target->text, sizeof target->text, "%.0f", value); break;
    case RT_KIND_REAL: snprintf(target->text, sizeof target->text, "%s", bs_number_print(value, DIGITS, digits)); break;
    case RT_KIND_GPU: break;
    }
}

/* Adds cells for all options behind the batch. The members of `c` have been checked. */
static void add_options(cells *out, const mdot_configuration *c)
{
    cell *parallel = NULL;
    for (size_t i = 0; i < RT_OPTION_COUNT; i++) {
        const rt_option *option = &rt_options[i];
        double value = rt_option_get(c, option);
        if (option->section == RT_SECTION_DEGREE) {
            if (parallel == NULL) parallel = add(out, "parallel", NULL);
            if (value != 0) add_degree(parallel, option->command, value);
        } else if (option->section == RT_SECTION_TRAINING || option->section == RT_SECTION_CLUSTER) {
            write_value(add(out, option->command, NULL), i, value);
        }
    }
    cell *link = add(out, "link", NULL);
    write_value(link, c->link_gbps > 0 ? RT_OPTION_link_gbps : RT_OPTION_link,
                c->link_gbps > 0 ? c->link_gbps : c->link);
}

static mdot_status make_cells(const mdot_measured_row *row, cells *out, mdot_error *err)
{
    mdot_configuration c = MDOT_INIT(mdot_configuration);
    rt_gpu_names names = {0};
    rt_configuration checked;
    const mdot_gpu *gpu;
    char digits[BS_NUMBER_BYTES];
    BS_TRY(bs_read_struct(&rt_configuration_type, row->configuration, &c, err));
    BS_TRY(rt_configuration_read(&c, 0, &names, &checked, err));
    if (checked.gpu.name == NULL)
        return BS_INVALID(err, "a measured row needs the name of its GPU: set --gpu, or name in --gpu-spec");
    BS_TRY(rt_gpu_find(checked.gpu.name, &gpu, err));
    if (row->job == NULL || row->job[0] == '\0' || !bs_is_printable(row->job))
        return BS_INVALID(err, "a measured row needs the file of its job, as printable text");
    if (!(row->step_ms > 0) || !isfinite(row->step_ms))
        return BS_INVALID(err, "step_ms is a time above 0, not %g", row->step_ms);
    if (!(row->memory_bytes >= 0) || !isfinite(row->memory_bytes))
        return BS_INVALID(err, "memory_bytes is a size of at least 0, not %g", row->memory_bytes);
    out->count = 0;
    add(out, "job", row->job);
    add(out, "gpu", gpu->name);
    snprintf(add(out, "batch", NULL)->text, CELL_BYTES, "%lld", (long long)c.batch);
    snprintf(add(out, "ms", NULL)->text, CELL_BYTES, "%s", bs_number_print(row->step_ms, DIGITS, digits));
    cell *memory = add(out, "gib", NULL);
    memory->is_optional = true;
    if (row->memory_bytes > 0)
        snprintf(memory->text, CELL_BYTES, "%s", bs_number_print(row->memory_bytes / GIB, DIGITS, digits));
    add_options(out, &c);
    add(out, "note", row->note != NULL ? row->note : "")->is_optional = true;
    return MDOT_OK;
}

/* Orders pointers to the cells by the table's columns; a column that rows of measured steps lack gets NULL. */
static mdot_status order_cells(const bs_csv *table, const cells *available, const cell **out_order, mdot_error *err)
{
    bool is_placed[MOST_CELLS] = {false};
    for (int column = 0; column < table->header_count; column++) {
        out_order[column] = NULL;
        for (size_t i = 0; i < available->count; i++) {
            if (strcmp(available->item[i].column, table->header[column]) != 0) continue;
            out_order[column] = &available->item[i];
            is_placed[i] = true;
        }
    }
    for (size_t i = 0; i < available->count; i++)
        if (!is_placed[i] && !available->item[i].is_optional && available->item[i].value[0] != '\0')
            return BS_INVALID(
                err, "%s: the table has no column %s, which this row needs; add the column, or name another table",
                table->path, available->item[i].column);
    return MDOT_OK;
}

/* Reads the header from the table's beginning, less a line that the beginning cuts. */
static mdot_status read_order(const char *path, const char *head, const cells *all, const cell **out_order,
                              size_t *out_count, mdot_error *err)
{
    bs_csv table;
    size_t size_bytes = strlen(head);
    bool is_cut = size_bytes == BS_APPEND_HEAD_BYTES - 1;
    while (is_cut && size_bytes > 0 && head[size_bytes - 1] != '\n') size_bytes--;
    mdot_status status = bs_csv_begin(path, head, size_bytes, NULL, &table, err);
    if (status == MDOT_MALFORMED)
        return mdot_fail(err, status, "%s: the table has no header in its first %d bytes", path, BS_APPEND_HEAD_BYTES);
    if (status != MDOT_OK) return status;
    status = order_cells(&table, all, out_order, err);
    *out_count = (size_t)table.header_count;
    bs_csv_close(&table);
    return status;
}

static void write_header(FILE *file, const cells *written)
{
    for (size_t i = 0; i < written->count; i++) fprintf(file, "%s%s", i > 0 ? "," : "", written->item[i].column);
    putc('\n', file);
}

static void write_row(FILE *file, const cell *const *order, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (i > 0) putc(',', file);
        if (order[i] != NULL) bs_csv_write_text(file, order[i]->value);
    }
    putc('\n', file);
}

/* Writes the lines to append as one text, which the caller frees. */
static mdot_status make_text(const char *path, const char *head, bool is_new, const cells *written, char **out_text,
                             size_t *out_bytes, mdot_error *err)
{
    const cell *order[BS_CSV_MAX_FIELDS];
    size_t count = written->count;
    for (size_t i = 0; i < count; i++) order[i] = &written->item[i];
    BS_TRY(is_new ? MDOT_OK : read_order(path, head, written, order, &count, err));
    bs_memstream stream;
    if (bs_memstream_open(&stream)) {
        if (is_new) write_header(stream.file, written);
        write_row(stream.file, order, count);
    }
    *out_text = bs_memstream_close(&stream, out_bytes);
    return *out_text != NULL ? MDOT_OK : BS_OUT_OF_MEMORY(err, "a row of %s", path);
}

mdot_status mdot_measured_append(const char *path, const mdot_measured_row *row, mdot_error *err)
{
    mdot_measured_row r = MDOT_INIT(mdot_measured_row);
    if (path == NULL || row == NULL) return BS_INVALID(err, "mdot_measured_append: path or row is NULL");
    mdot_status status = bs_read_struct(&row_type, row, &r, err);
    if (status == MDOT_OK && r.configuration == NULL)
        status = BS_INVALID(err, "mdot_measured_append: row->configuration is NULL");
    if (status != MDOT_OK) return status;
    cells *all = calloc(1, sizeof *all);
    bs_append *append = calloc(1, sizeof *append);
    char *text = NULL;
    size_t size_bytes = 0;
    if (all == NULL || append == NULL) status = BS_OUT_OF_MEMORY(err, "a row of %s", path);
    if (status == MDOT_OK) status = make_cells(&r, all, err);
    if (status == MDOT_OK) status = bs_append_begin(append, path, err);
    if (status == MDOT_OK) {
        status = make_text(path, append->head, append->size_bytes == 0, all, &text, &size_bytes, err);
        if (status == MDOT_OK)
            status = bs_append_end(append, text, size_bytes, err);
        else
            bs_append_cancel(append);
    }
    free(text);
    free(append);
    free(all);
    return status;
}
