/* page_scan.c — finds records in a damaged store's bytes (records.h). SQLite's file format:
 * https://sqlite.org/fileformat2.html.
 *
 * A cell in a table's leaf page is: the payload size, the id, and the payload. A large payload continues on overflow
 * pages. The payload is a header with the types, then the values. Every offset is tried as a cell: the types must match
 * a store table, and the 64-bit seal must be right. */
#include "base/file.h"
#include "base/status.h"
#include "store/records.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    LEAST_PAGE = 512,
    MOST_PAGE = 65536,
    USUAL_PAGE = 4096,
    WAL_HEADER = 32,
    FRAME_HEADER = 24,
    MOST_PAYLOAD = 1 << 29
};

typedef struct scan {
    int file, wal; /* wal is -1 if there is none */
    uint64_t file_bytes;
    uint32_t page_bytes;              /* no byte of a page is reserved */
    uint64_t page_count, frame_count; /* frames: committed ones */
    uint32_t *frame_page;             /* number of the page in each frame */
    unsigned char *page, *overflow;
    unsigned char *payload;
    size_t payload_capacity;
    st_take_record take;
    void *user;
    bool stopped;
} scan;

static uint32_t big_32(const unsigned char *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static bool read_at(int file, uint64_t offset, void *target, size_t size)
{
    return pread(file, target, size, (off_t)offset) == (ssize_t)size;
}

static uint64_t frame_offset(const scan *s, uint64_t frame)
{
    return WAL_HEADER + frame * ((uint64_t)FRAME_HEADER + s->page_bytes);
}

/* Reads a page from the newest frame that has it, or from the file. The last page of a file may be cut. No
 * file has page 0. */
static bool read_page(const scan *s, uint32_t number, bool uses_wal, unsigned char *target)
{
    for (uint64_t f = uses_wal ? s->frame_count : 0; f-- > 0;)
        if (s->frame_page[f] == number)
            return read_at(s->wal, frame_offset(s, f) + FRAME_HEADER, target, s->page_bytes);
    uint64_t offset = (uint64_t)(number - 1) * s->page_bytes;
    if (offset >= s->file_bytes) return false;
    memset(target, 0, s->page_bytes);
    uint64_t rest = s->file_bytes - offset;
    return read_at(s->file, offset, target, rest < s->page_bytes ? (size_t)rest : s->page_bytes);
}

/* SQLite's variable-length integer; returns the length, or 0 if it ends behind the bytes. */
static size_t read_varint(const unsigned char *at, const unsigned char *end, uint64_t *out)
{
    uint64_t value = 0;
    for (size_t i = 0; i < 9 && at + i < end; i++) {
        if (i == 8) {
            *out = value << 8 | at[i];
            return 9;
        }
        value = value << 7 | (at[i] & 0x7f);
        if ((at[i] & 0x80) == 0) {
            *out = value;
            return i + 1;
        }
    }
    return 0;
}

static bool is_type(char wanted, uint64_t serial)
{
    bool is_whole = (serial >= 1 && serial <= 6) || serial == 8 || serial == 9;
    switch (wanted) {
    case 'I': return is_whole;
    case 'R': return is_whole || serial == 7;
    case 'B': return serial >= 12 && serial % 2 == 0;
    default: return serial >= 13 && serial % 2 == 1;
    }
}

static uint64_t size_of(uint64_t serial)
{
    static const unsigned char sizes[12] = {0, 1, 2, 3, 4, 6, 8, 8}; /* the others have no bytes */
    return serial < 12 ? sizes[serial] : (serial - 12) / 2;
}

typedef struct header {
    uint64_t serial[ST_MAX_WIDTH + 2]; /* id, columns, seal */
    int count;
    uint64_t bytes, payload_bytes;
} header;

/* Reads a record header; false unless the sizes add up to the payload. */
static bool read_header(const unsigned char *at, const unsigned char *end, uint64_t payload_bytes, header *out)
{
    uint64_t total = 0;
    size_t used = read_varint(at, end, &out->bytes);
    if (used == 0 || out->bytes > (uint64_t)(end - at)) return false;
    out->count = 0;
    for (size_t offset = used; offset < out->bytes;) {
        if (out->count == ST_MAX_WIDTH + 2) return false;
        uint64_t *serial = &out->serial[out->count];
        used = read_varint(at + offset, at + out->bytes, serial);
        if (used == 0 || *serial > 2 * (uint64_t)MOST_PAYLOAD) return false;
        total += size_of(*serial);
        out->count++;
        offset += used;
    }
    out->payload_bytes = payload_bytes;
    return out->bytes + total == payload_bytes;
}

static const st_table *table_of(const header *h)
{
    for (int t = 0; t < ST_TABLES; t++) {
        const st_table *table = &st_tables[t];
        if (h->count != table->width + 2 || h->serial[0] != 0 || !is_type('I', h->serial[h->count - 1])) continue;
        int i = 0;
        while (i < table->width && is_type(table->types[i], h->serial[i + 1])) i++;
        if (i == table->width) return table;
    }
    return NULL;
}

static int64_t whole_of(const unsigned char *at, uint64_t serial)
{
    if (serial == 8 || serial == 9) return serial == 9;
    uint64_t size = size_of(serial), value = (at[0] & 0x80) != 0 ? UINT64_MAX : 0;
    for (uint64_t i = 0; i < size; i++) value = value << 8 | at[i];
    return (int64_t)value;
}

static bool has_seal(const st_table *table, const header *h, const unsigned char *payload, st_value *values)
{
    const unsigned char *at = payload + h->bytes;
    for (int i = 0; i < table->width; i++) {
        uint64_t serial = h->serial[i + 1];
        values[i] = (st_value){.bytes = at, .size_bytes = (size_t)size_of(serial)};
        if (serial == 7) {
            uint64_t bits = (uint64_t)whole_of(at, 6);
            memcpy(&values[i].real, &bits, sizeof bits);
        } else if (serial < 12) {
            values[i].whole = whole_of(at, serial);
            values[i].real = (double)values[i].whole;
        }
        at += size_of(serial);
    }
    return st_seal(table, values) == whole_of(at, h->serial[h->count - 1]);
}

/* Joins a payload's local part and overflow pages. */
static bool assemble(scan *s, const unsigned char *at, const unsigned char *end, uint64_t payload_bytes, bool uses_wal)
{
    uint64_t usable = s->page_bytes, maximum = usable - 35, local = payload_bytes;
    if (payload_bytes > maximum) {
        uint64_t minimum = (usable - 12) * 32 / 255 - 23, fits = minimum + (payload_bytes - minimum) % (usable - 4);
        local = fits <= maximum ? fits : minimum;
    }
    if (local + (local < payload_bytes ? 4 : 0) > (uint64_t)(end - at)) return false;
    if (payload_bytes > s->payload_capacity) {
        unsigned char *larger = realloc(s->payload, payload_bytes);
        if (larger == NULL) return false;
        s->payload = larger;
        s->payload_capacity = payload_bytes;
    }
    memcpy(s->payload, at, local);
    uint32_t next_page = local < payload_bytes ? big_32(at + local) : 0;
    for (uint64_t have = local; have < payload_bytes;) {
        if (!read_page(s, next_page, uses_wal, s->overflow)) return false;
        uint64_t part = payload_bytes - have < usable - 4 ? payload_bytes - have : usable - 4;
        memcpy(s->payload + have, s->overflow + 4, part);
        next_page = big_32(s->overflow);
        have += part;
    }
    return true;
}

static void try_cell(scan *s, const unsigned char *at, const unsigned char *end)
{
    uint64_t payload_bytes, id;
    size_t used = read_varint(at, end, &payload_bytes);
    if (used == 0 || payload_bytes > MOST_PAYLOAD || payload_bytes > s->file_bytes + s->frame_count * s->page_bytes)
        return;
    size_t id_used = read_varint(at + used, end, &id);
    header h;
    const unsigned char *payload = at + used + id_used;
    if (id_used == 0 || id == 0 || id > INT64_MAX || !read_header(payload, end, payload_bytes, &h)) return;
    const st_table *table = table_of(&h);
    if (table == NULL) return;
    for (int uses_wal = 1; uses_wal >= 0; uses_wal--) {
        st_value values[ST_MAX_WIDTH];
        if (!assemble(s, payload, end, payload_bytes, uses_wal == 1) || !has_seal(table, &h, s->payload, values))
            continue;
        s->stopped = !s->take(s->user, table, (int64_t)id, values);
        return;
    }
}

static void scan_page(scan *s)
{
    const unsigned char *end = s->page + s->page_bytes;
    for (const unsigned char *cell_start = s->page; cell_start < end && !s->stopped; cell_start++)
        try_cell(s, cell_start, end);
}

/* The page's size from the header of the file, if it is plausible. */
static void read_sizes(scan *s)
{
    unsigned char head[100] = {0};
    s->page_bytes = USUAL_PAGE;
    if (!read_at(s->file, 0, head, sizeof head)) return;
    uint32_t size = (uint32_t)head[16] << 8 | head[17];
    if (size == 1) size = MOST_PAGE;
    bool is_power = size >= LEAST_PAGE && size <= MOST_PAGE && (size & (size - 1)) == 0;
    if (!is_power || memcmp(head, "SQLite format 3", 16) != 0) return;
    s->page_bytes = size;
}

/* Finds the committed frames: those of the log's present generation, up to the last commit. */
static bool read_frames(scan *s, const char *path)
{
    unsigned char head[WAL_HEADER], frame[FRAME_HEADER];
    char *name = NULL;
    uint64_t size = 0;
    if (asprintf(&name, "%s-wal", path) < 0) return false;
    bool is_open = bs_open_file(name, &s->wal, &size, NULL) == MDOT_OK;
    free(name);
    if (!is_open || size < WAL_HEADER || !read_at(s->wal, 0, head, sizeof head) || big_32(head + 8) != s->page_bytes)
        return true;
    uint64_t maximum = (size - WAL_HEADER) / ((uint64_t)FRAME_HEADER + s->page_bytes);
    s->frame_page = malloc((maximum + 1) * sizeof *s->frame_page);
    if (s->frame_page == NULL) return false;
    for (uint64_t f = 0; f < maximum; f++) {
        if (!read_at(s->wal, frame_offset(s, f), frame, sizeof frame) || memcmp(frame + 8, head + 16, 8) != 0) break;
        s->frame_page[f] = big_32(frame);
        if (big_32(frame + 4) != 0) s->frame_count = f + 1;
    }
    return true;
}

static void scan_all(scan *s)
{
    uint64_t pages = s->file_bytes / s->page_bytes + 1; /* the last one may be cut or absent */
    for (uint64_t i = 1; i <= pages && !s->stopped; i++)
        if (read_page(s, (uint32_t)i, false, s->page)) scan_page(s);
    for (uint64_t f = 0; f < s->frame_count && !s->stopped; f++)
        if (read_at(s->wal, frame_offset(s, f) + FRAME_HEADER, s->page, s->page_bytes)) scan_page(s);
}

mdot_status st_scan_pages(const char *path, st_take_record take, void *user, mdot_error *err)
{
    scan s = {.file = -1, .wal = -1, .take = take, .user = user};
    mdot_status status = bs_open_file(path, &s.file, &s.file_bytes, err);
    if (status != MDOT_OK) return status;
    read_sizes(&s);
    bool allocated = read_frames(&s, path);
    s.page = malloc(s.page_bytes);
    s.overflow = malloc(s.page_bytes);
    if (allocated && s.page != NULL && s.overflow != NULL)
        scan_all(&s);
    else
        status = BS_OUT_OF_MEMORY(err, "the pages of %s", path);
    close(s.file);
    if (s.wal >= 0) close(s.wal);
    free(s.frame_page);
    free(s.page);
    free(s.overflow);
    free(s.payload);
    return status;
}
