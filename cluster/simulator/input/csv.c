/* csv.c — reading comma-separated tables. */
#include "simulator/input/csv.h"
#include "base/out_of_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

mdot_status sc_csv_fail(const sc_csv *csv, mdot_error *err, const char *format, ...)
{
    char reason[512];
    va_list args;
    va_start(args, format);
    vsnprintf(reason, sizeof reason, format, args);
    va_end(args);
    return mdot_fail(err, MDOT_MALFORMED, "%s:%zu: %s", csv->path, csv->line, reason);
}

/* Reads all of a regular file and appends a NUL. A file that contains a NUL is refused. Other kinds of files are
 * refused without waiting. */
static mdot_status read_text(const char *path, char **out_text, mdot_error *err)
{
    int descriptor = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
    FILE *file = descriptor >= 0 ? fdopen(descriptor, "rb") : NULL;
    if (file == NULL && descriptor >= 0) close(descriptor);
    if (file == NULL)
        return mdot_fail(err, errno == ENOENT ? MDOT_NOT_FOUND : MDOT_IO, "%s: %s", path, strerror(errno));
    struct stat info;
    char *text = NULL;
    mdot_status status = MDOT_OK;
    if (fstat(fileno(file), &info) != 0 || !S_ISREG(info.st_mode)) {
        status = mdot_fail(err, MDOT_IO, "%s: not a regular file", path);
    } else {
        size_t size = (size_t)info.st_size;
        text = malloc(size + 1);
        if (text == NULL)
            status = BS_OUT_OF_MEMORY(err, "%zu bytes of %s", size, path);
        else if (fread(text, 1, size, file) != size)
            status = mdot_fail(err, MDOT_IO, "%s: cannot be read", path);
        else if (memchr(text, '\0', size) != NULL)
            status = mdot_fail(err, MDOT_MALFORMED, "%s: the file contains zero bytes, but must be text", path);
        else
            text[size] = '\0';
    }
    fclose(file);
    if (status == MDOT_OK)
        *out_text = text;
    else
        free(text);
    return status;
}

/* Terminates the field at `begin` and stores the beginning of the next one in *out_next; NULL: it was the last.
 * Returns the field, less its quotes; NULL for a quoted field that lacks its end or is followed by other text. */
static char *take_field(char *begin, char separator, char **out_next)
{
    char *end = begin, *to = begin;
    if (separator == '|') {
        to = end = begin + strcspn(begin, "|");
    } else if (*begin == '"') {
        bool is_open = true;
        for (end++; *end != '\0'; end++) {
            if (*end == '"' && end[1] != '"') {
                is_open = false;
                end++;
                break;
            }
            if (*end == '"') end++;
            *to++ = *end;
        }
        if (is_open || (*end != ',' && *end != '\0')) return NULL;
    } else {
        to = end = begin + strcspn(begin, ",");
    }
    *out_next = *end == separator ? end + 1 : NULL;
    *to = '\0';
    return begin;
}

static mdot_status split(const sc_csv *csv, char *line, char **fields, int *out_count, mdot_error *err)
{
    int count = 0;
    for (char *at = line; at != NULL;) {
        if (count == SC_CSV_MAX_FIELDS) return sc_csv_fail(csv, err, "more than %d fields", SC_CSV_MAX_FIELDS);
        if (csv->separator == '|' && count + 1 == csv->header_count) {
            fields[count++] = at; /* with any further separators */
            break;
        }
        fields[count] = take_field(at, csv->separator, &at);
        if (fields[count++] == NULL)
            return sc_csv_fail(csv, err, "a quote is unterminated or is followed by text other than a comma");
    }
    *out_count = count;
    return MDOT_OK;
}

/* Returns the next non-empty line, less its end, or NULL. */
static char *take_line(sc_csv *csv)
{
    while (*csv->at != '\0') {
        char *line = csv->at;
        size_t length = strcspn(line, "\n");
        csv->at = line + length + (line[length] == '\n');
        csv->line++;
        line[length] = '\0';
        if (length > 0 && line[length - 1] == '\r') line[--length] = '\0';
        if (length > 0) return line;
    }
    return NULL;
}

static bool begins_with_field(const char *text, const char *header)
{
    size_t length = strcspn(header, ",");
    return strncmp(text, header, length) == 0 && (text[length] == ',' || text[length] == '\0');
}

mdot_status sc_csv_open(const char *path, const char *header, sc_csv *out_csv, mdot_error *err)
{
    static const char byte_order_mark[] = "\xef\xbb\xbf";
    sc_csv csv = {.path = path, .separator = ','};
    mdot_status status = read_text(path, &csv.text, err);
    if (status != MDOT_OK) return status;
    csv.at = csv.text;
    if (strncmp(csv.at, byte_order_mark, 3) == 0) csv.at += 3;
    if (header != NULL && !begins_with_field(csv.at, header)) {
        /* put the header before the text, in one block of memory */
        size_t length = strlen(header), rest = strlen(csv.at);
        char *both = malloc(length + rest + 2);
        if (both == NULL) {
            free(csv.text);
            return BS_OUT_OF_MEMORY(err, "%s", path);
        }
        memcpy(both, header, length + 1);
        memcpy(both + length + 1, csv.at, rest + 1);
        free(csv.text);
        csv.text = both;
        csv.at = both + length + 1;
        status = split(&csv, csv.text, csv.header, &csv.header_count, err);
    } else {
        char *line = take_line(&csv);
        while (header == NULL && line != NULL && line[0] == '#') line = take_line(&csv);
        if (line != NULL && strchr(line, '|') != NULL && strchr(line, ',') == NULL) csv.separator = '|';
        status = line == NULL ? mdot_fail(err, MDOT_MALFORMED, "%s: is empty", path)
                              : split(&csv, line, csv.header, &csv.header_count, err);
    }
    if (status == MDOT_OK)
        *out_csv = csv;
    else
        free(csv.text);
    return status;
}

void sc_csv_close(sc_csv *csv)
{
    free(csv->text);
    *csv = (sc_csv){0};
}

mdot_status sc_csv_next(sc_csv *csv, bool *out_is_row, mdot_error *err)
{
    char *line = take_line(csv);
    *out_is_row = line != NULL;
    if (line == NULL) return MDOT_OK;
    mdot_status status = split(csv, line, csv->field, &csv->field_count, err);
    if (status == MDOT_OK && csv->field_count != csv->header_count)
        status = sc_csv_fail(csv, err, "%d fields, but the header has %d", csv->field_count, csv->header_count);
    return status;
}

char *sc_csv_copy(const sc_csv *csv, int column, bool *out_is_missing)
{
    if (column == SC_CSV_ABSENT || csv->field[column][0] == '\0') return NULL;
    char *copy = strdup(csv->field[column]);
    *out_is_missing = *out_is_missing || copy == NULL;
    return copy;
}

int sc_csv_find(const sc_csv *csv, const char *column)
{
    for (int i = 0; i < csv->header_count; i++)
        if (strcmp(csv->header[i], column) == 0) return i;
    return SC_CSV_ABSENT;
}

mdot_status sc_csv_need(const sc_csv *csv, const char *column, int *out_index, mdot_error *err)
{
    for (int i = 1; i < csv->header_count; i++)
        if (csv->header[i][0] != '\0' && sc_csv_find(csv, csv->header[i]) < i)
            return mdot_fail(err, MDOT_MALFORMED, "%s: there are two columns %.40s", csv->path, csv->header[i]);
    *out_index = sc_csv_find(csv, column);
    if (*out_index != SC_CSV_ABSENT) return MDOT_OK;
    return mdot_fail(err, MDOT_MALFORMED, "%s: there is no column %s", csv->path, column);
}

mdot_status sc_csv_number(const sc_csv *csv, int column, double least, double most, double *out_value, mdot_error *err)
{
    const char *text = csv->field[column], *name = csv->header[column];
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end != '\0' || !isfinite(value))
        return sc_csv_fail(csv, err, "%s is not a number: \"%.40s\"", name, text);
    if (value < least) return sc_csv_fail(csv, err, "%s is %s, less than %g", name, text, least);
    if (value > most) return sc_csv_fail(csv, err, "%s is %s, more than %g", name, text, most);
    *out_value = value;
    return MDOT_OK;
}

mdot_status sc_csv_integer(const sc_csv *csv, int column, int least, int most, int *out_value, mdot_error *err)
{
    double value;
    mdot_status status = sc_csv_number(csv, column, least, most, &value, err);
    if (status != MDOT_OK) return status;
    if (value != floor(value))
        return sc_csv_fail(csv, err, "%s is not an integer: \"%.40s\"", csv->header[column], csv->field[column]);
    *out_value = (int)value;
    return MDOT_OK;
}
