/* csv.c — see csv.h. */
#include "base/csv.h"

#include "base/file.h"
#include "base/text.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

mdot_status bs_csv_fail(const bs_csv *csv, mdot_error *err, mdot_status status, const char *format, ...)
{
    char reason[sizeof err->message];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(reason, sizeof reason, format, arguments);
    va_end(arguments);
    if (csv->line == 0) return mdot_fail(err, status, "%s: %s", csv->path, reason);
    return mdot_fail(err, status, "%s:%zu: %s", csv->path, csv->line, reason);
}

/* Returns the next line with content, terminated in place, or NULL. */
static char *take_line(bs_csv *csv, bool skips_comments)
{
    while (*csv->position != '\0') {
        char *line = csv->position;
        size_t length = strcspn(line, "\n");
        csv->position = line + length + (line[length] == '\n');
        csv->line++;
        line[length] = '\0';
        if (length > 0 && line[length - 1] == '\r') line[length - 1] = '\0';
        if (line[strspn(line, " \t\r")] != '\0' && !(skips_comments && *line == '#')) return line;
    }
    return NULL;
}

/* Reads the field at *io_position without quotes, and moves behind the separator; NULL behind the last field. Returns a
 * description of the fault, or NULL. */
static const char *take_field(char separator, char **io_position, char **out_field)
{
    char *source = *io_position + strspn(*io_position, " ");
    char *field = source, *end = field;
    bool is_quoted = *source == '"';
    if (is_quoted) source++;
    for (; *source != '\0' && (is_quoted || *source != separator); source++) {
        if (is_quoted && *source == '"') {
            if (source[1] != '"') break;
            source++;
        }
        *end++ = *source;
    }
    if (is_quoted && *source != '"') return "a quote is not closed";
    if (is_quoted) source++;
    source += strspn(source, " ");
    if (*source != '\0' && *source != separator) return "characters follow a closing quote";
    while (!is_quoted && end > field && end[-1] == ' ') end--;
    *io_position = *source == separator ? source + 1 : NULL;
    *end = '\0';
    *out_field = field;
    return NULL;
}

/* The last column of a table with "|" has the rest of the line. */
static void take_plain_field(bs_csv *csv, int index, char **io_position, char **out_field)
{
    char *end = index + 1 == csv->header_count ? NULL : strchr(*io_position, '|');
    *out_field = *io_position;
    *io_position = end != NULL ? end + 1 : NULL;
    if (end != NULL) *end = '\0';
}

static mdot_status split(bs_csv *csv, char *line, char **fields, int *out_count, mdot_error *err)
{
    const char *fault = NULL;
    int count = 0;
    for (char *position = line; position != NULL; count++) {
        if (count == BS_CSV_MAX_FIELDS)
            return bs_csv_fail(csv, err, MDOT_MALFORMED, "more than %d fields", BS_CSV_MAX_FIELDS);
        if (csv->separator == '|')
            take_plain_field(csv, count, &position, &fields[count]);
        else
            fault = take_field(csv->separator, &position, &fields[count]);
        if (fault != NULL) return bs_csv_fail(csv, err, MDOT_MALFORMED, "%s", fault);
    }
    *out_count = count;
    return MDOT_OK;
}

static bool begins_with_field(const char *text, const char *header)
{
    size_t length = strcspn(header, ",");
    return strncmp(text, header, length) == 0 && (text[length] == ',' || text[length] == '\0');
}

/* Counts the lines, and refuses a zero byte. */
static mdot_status check_text(bs_csv *csv, size_t size_bytes, mdot_error *err)
{
    csv->line_count = 1;
    for (size_t i = 0; i < size_bytes; i++) {
        if (csv->text[i] == '\n') csv->line_count++;
        if (csv->text[i] != '\0') continue;
        csv->line = csv->line_count;
        return bs_csv_fail(csv, err, MDOT_MALFORMED, "a zero byte; the table must be text");
    }
    return MDOT_OK;
}

static mdot_status read_header(bs_csv *csv, const char *header, mdot_error *err)
{
    static const char byte_order_mark[] = "\xef\xbb\xbf";
    char *line;
    csv->position = csv->text;
    if (strncmp(csv->text, byte_order_mark, 3) == 0) csv->position += 3;
    if (header != NULL && !begins_with_field(csv->position, header)) {
        line = csv->header_text = strdup(header);
        if (line == NULL) return BS_OUT_OF_MEMORY(err, "%s", csv->path);
    } else {
        line = take_line(csv, true);
        if (line == NULL) return mdot_fail(err, MDOT_MALFORMED, "%s: the table is empty", csv->path);
        if (*line == '{' || *line == '[')
            return bs_csv_fail(csv, err, MDOT_MALFORMED,
                               "JSON in place of a table; write its rows as CSV, for example with pandas' to_csv");
        if (strchr(line, ',') == NULL && strpbrk(line, "|;\t") != NULL) csv->separator = *strpbrk(line, "|;\t");
    }
    return split(csv, line, csv->header, &csv->header_count, err);
}

/* Takes over a text that ends with NUL, or frees it on failure. */
static mdot_status begin(const char *path, char *text, size_t size_bytes, const char *header, bs_csv *out_csv,
                         mdot_error *err)
{
    bs_csv csv = {.path = path, .text = text, .separator = ','};
    mdot_status status = check_text(&csv, size_bytes, err);
    if (status == MDOT_OK) status = read_header(&csv, header, err);
    if (status == MDOT_OK)
        *out_csv = csv;
    else
        bs_csv_close(&csv);
    return status;
}

mdot_status bs_csv_begin(const char *path, const char *text, size_t size_bytes, const char *header, bs_csv *out_csv,
                         mdot_error *err)
{
    char *copy = malloc(size_bytes + 1);
    if (copy == NULL) return BS_OUT_OF_MEMORY(err, "%s", path);
    memcpy(copy, text, size_bytes);
    copy[size_bytes] = '\0';
    return begin(path, copy, size_bytes, header, out_csv, err);
}

mdot_status bs_csv_open(const char *path, uint64_t max_bytes, const char *header, bs_csv *out_csv, mdot_error *err)
{
    unsigned char *bytes;
    size_t size_bytes;
    mdot_status status = bs_read_file_within(path, max_bytes, &bytes, &size_bytes, err);
    return status == MDOT_OK ? begin(path, (char *)bytes, size_bytes, header, out_csv, err) : status;
}

void bs_csv_close(bs_csv *csv)
{
    free(csv->text);
    free(csv->header_text);
    *csv = (bs_csv){0};
}

mdot_status bs_csv_next(bs_csv *csv, bool *out_is_row, mdot_error *err)
{
    char *line = take_line(csv, csv->separator != '|');
    *out_is_row = line != NULL;
    if (line == NULL) return MDOT_OK;
    BS_TRY(split(csv, line, csv->field, &csv->field_count, err));
    if (csv->field_count != csv->header_count)
        return bs_csv_fail(csv, err, MDOT_MALFORMED, "there are %d fields, but %d columns", csv->field_count,
                           csv->header_count);
    return MDOT_OK;
}

int bs_csv_find(const bs_csv *csv, const char *column)
{
    for (int i = 0; i < csv->header_count; i++)
        if (strcmp(csv->header[i], column) == 0) return i;
    return BS_CSV_ABSENT;
}

mdot_status bs_csv_need(const bs_csv *csv, const char *column, int *out_index, mdot_error *err)
{
    for (int i = 1; i < csv->header_count; i++)
        if (csv->header[i][0] != '\0' && bs_csv_find(csv, csv->header[i]) < i)
            return bs_csv_fail(csv, err, MDOT_MALFORMED, "there are two columns %.64s", csv->header[i]);
    *out_index = bs_csv_find(csv, column);
    if (*out_index != BS_CSV_ABSENT) return MDOT_OK;
    return bs_csv_fail(csv, err, MDOT_MALFORMED, "there is no column %s; the first, up to a \"%c\", is \"%.60s\"",
                       column, csv->separator, csv->header[0]);
}

/* Reads a number whose digits underscores may group. Returns false for other text. */
static bool read_number(const char *text, double *out_value)
{
    char plain[64];
    size_t length = 0;
    const char *end;
    for (; *text != '\0' && length + 1 < sizeof plain; text++)
        if (*text != '_') plain[length++] = *text;
    plain[length] = '\0';
    *out_value = bs_number_read(plain, &end);
    return *text == '\0' && end != plain && *end == '\0' && isfinite(*out_value);
}

mdot_status bs_csv_number(const bs_csv *csv, int column, double minimum, double maximum, double *out_value,
                          mdot_error *err)
{
    const char *text = csv->field[column], *name = csv->header[column];
    double value;
    if (!read_number(text, &value))
        return bs_csv_fail(csv, err, MDOT_MALFORMED, "%s is not a number: \"%.40s\"", name, text);
    if (value < minimum) return bs_csv_fail(csv, err, MDOT_MALFORMED, "%s is %s, less than %g", name, text, minimum);
    if (value > maximum) return bs_csv_fail(csv, err, MDOT_MALFORMED, "%s is %s, more than %g", name, text, maximum);
    *out_value = value;
    return MDOT_OK;
}

mdot_status bs_csv_integer(const bs_csv *csv, int column, int minimum, int maximum, int *out_value, mdot_error *err)
{
    double value;
    BS_TRY(bs_csv_number(csv, column, minimum, maximum, &value, err));
    if (value != floor(value))
        return bs_csv_fail(csv, err, MDOT_MALFORMED, "%s is not an integer: \"%.40s\"", csv->header[column],
                           csv->field[column]);
    *out_value = (int)value;
    return MDOT_OK;
}

static char printed(char c) { return (unsigned char)c < ' ' ? ' ' : c; }

void bs_csv_write(FILE *stream, const char *text, size_t length)
{
    bool is_quoted = length > 0 && (printed(text[0]) == ' ' || text[0] == '#' || printed(text[length - 1]) == ' ');
    for (size_t i = 0; i < length && !is_quoted; i++) is_quoted = text[i] == ',' || text[i] == '"';
    if (is_quoted) fputc('"', stream);
    for (size_t i = 0; i < length; i++) {
        if (text[i] == '"') fputc('"', stream);
        fputc(printed(text[i]), stream);
    }
    if (is_quoted) fputc('"', stream);
}

void bs_csv_write_text(FILE *stream, const char *text) { bs_csv_write(stream, text, strlen(text)); }
