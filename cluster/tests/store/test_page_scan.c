/* test_page_scan.c — the search for records reads what SQLite's file format says (https://sqlite.org/fileformat2.html).
 * This file writes random images of damaged databases by its own rules: pages of all sizes, cells at any offset,
 * numbers of any width, chains of overflow pages in the file and in the log. Only whole, unchanged
 * records may be found. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "store/records.h"
#include "tests/store/support/store_fixture.h"
#include "tests/support/process.h"

#include <unistd.h>

enum { MOST_PAGES = 120, MOST_PAGE = 65536, MOST_FRAMES = 60, RECORDS = 12, MOST_TEXT = 9000, MOST_CELL = 1 << 18 };

static uint64_t state_of_random;

static uint64_t draw(uint64_t below)
{
    state_of_random = state_of_random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (state_of_random >> 20) % below;
}

/* A number of up to 63 bits, of any size. */
static int64_t draw_number(void) { return (int64_t)((draw(1u << 31) << 31 | draw(1u << 31)) >> draw(62)); }

static size_t put_big(unsigned char *at, uint64_t value, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) at[i] = (unsigned char)(value >> 8 * (bytes - 1 - i));
    return bytes;
}

static size_t put_varint(unsigned char *at, uint64_t value)
{
    size_t bytes = 1;
    if (value >> 56 != 0) {
        for (size_t i = 0; i < 8; i++) at[i] = (unsigned char)(0x80 | value >> (8 + 7 * (7 - i)));
        at[8] = (unsigned char)value;
        return 9;
    }
    while (bytes < 8 && value >> 7 * bytes != 0) bytes++;
    for (size_t i = 0; i < bytes; i++)
        at[i] = (unsigned char)((i + 1 < bytes ? 0x80 : 0) | (value >> 7 * (bytes - 1 - i) & 0x7f));
    return bytes;
}

typedef enum flaw {
    NO_FLAW,
    LONG_PAYLOAD,
    SHORT_PAYLOAD,
    NO_ID,
    NEGATIVE_ID,
    ID_WITH_VALUE,
    OTHER_SEAL,
    OTHER_TYPE,
    MISSING_COLUMN,
    WRAPPING_SIZES,
    BROKEN_CHAIN,
    CUT_CELL,
    FLAWS
} flaw;

typedef struct record {
    const st_table *table;
    int64_t id;
    st_value value[ST_MAX_WIDTH];
    unsigned char *text[ST_MAX_WIDTH]; /* owned */
} record;

typedef struct image {
    unsigned char *page[MOST_PAGES]; /* page 1 is the first */
    size_t page_count;
    unsigned char *frame[MOST_FRAMES];
    uint32_t frame_page[MOST_FRAMES];
    size_t frame_count;
    size_t page_bytes;
    bool ignores_log; /* the log has other page sizes, or no commit */
    size_t slack;     /* bytes at the end of the last page without a record */
    record wanted[RECORDS], in_log[RECORDS];
    size_t wanted_count, in_log_count;
} image;

static unsigned char *new_page(const image *m)
{
    unsigned char *page = malloc(m->page_bytes);
    assert_non_null(page);
    uint64_t mask = draw(2) == 0 ? 0xff : 0x1f;
    for (size_t i = 0; i < m->page_bytes; i++) page[i] = (unsigned char)(draw(256) & mask);
    return page;
}

static uint32_t add_page(image *m)
{
    assert_true(m->page_count < MOST_PAGES);
    m->page[m->page_count++] = new_page(m);
    return (uint32_t)m->page_count;
}

static unsigned char *add_frame(image *m, uint32_t page)
{
    assert_true(m->frame_count < MOST_FRAMES);
    m->frame_page[m->frame_count] = page;
    return m->frame[m->frame_count++] = new_page(m);
}

/* Appends a whole number in any width that holds it; returns the serial type. */
static uint64_t put_whole(unsigned char *body, size_t *size, int64_t value)
{
    static const int widths[7] = {0, 1, 2, 3, 4, 6, 8};
    if ((value == 0 || value == 1) && draw(2) == 0) return value == 0 ? 8 : 9;
    int least = 1;
    while (least < 6 &&
           (value >= (int64_t)1 << (8 * widths[least] - 1) || value < -((int64_t)1 << (8 * widths[least] - 1))))
        least++;
    int serial = least + (int)draw(7 - (uint64_t)least);
    *size += put_big(body + *size, (uint64_t)value, (size_t)widths[serial]);
    return (uint64_t)serial;
}

/* Fills a record, and its payload; returns the payload's size. */
static size_t fill_record(record *r, flaw kind, size_t most_text, unsigned char *payload)
{
    static unsigned char body[MOST_CELL];
    unsigned char types[9 * (ST_MAX_WIDTH + 4)];
    size_t size = 0, type_bytes = 0;
    r->table = &st_tables[draw(ST_TABLES)];
    r->id = draw(8) == 0 ? INT64_MAX : 1 + draw_number();
    if (kind == ID_WITH_VALUE)
        type_bytes += put_varint(types, put_whole(body, &size, 5));
    else
        types[type_bytes++] = 0;
    for (int i = 0; i < r->table->width - (kind == MISSING_COLUMN); i++) {
        st_value *v = &r->value[i];
        char type = r->table->types[i];
        uint64_t serial = 0;
        *v = (st_value){0};
        if (type == 'I' || (type == 'R' && draw(2) == 0)) {
            v->whole = draw(2) == 0 ? draw_number() : -draw_number();
            if (draw(3) == 0) v->whole = (int64_t)draw(3);
            if (type == 'R') v->whole /= 1024; /* exact as a real number */
            v->real = (double)v->whole;
            serial = put_whole(body, &size, v->whole);
        } else if (type == 'R') {
            uint64_t bits;
            v->real = (double)draw_number() / 1e6 - 5;
            memcpy(&bits, &v->real, sizeof bits);
            size += put_big(body + size, bits, 8);
            serial = 7;
        } else {
            v->size_bytes = draw(4) == 0 ? (size_t)draw(most_text) : (size_t)draw(20);
            r->text[i] = malloc(v->size_bytes + 1);
            assert_non_null(r->text[i]);
            for (size_t k = 0; k < v->size_bytes; k++) r->text[i][k] = (unsigned char)draw(256);
            memcpy(body + size, r->text[i], v->size_bytes);
            size += v->size_bytes;
            v->bytes = r->text[i];
            serial = 2 * v->size_bytes + (type == 'B' ? 12 : 13);
        }
        if (kind == OTHER_TYPE && i == 0) serial = serial >= 12 ? serial ^ 1 : serial == 7 ? 0 : 7;
        if (kind == WRAPPING_SIZES && serial >= 12) serial |= UINT64_C(1) << 63;
        type_bytes += put_varint(types + type_bytes, serial);
    }
    uint64_t seal = (uint64_t)st_seal(r->table, r->value) ^ (kind == OTHER_SEAL ? UINT64_C(1) << draw(64) : 0);
    type_bytes += put_varint(types + type_bytes, put_whole(body, &size, (int64_t)seal));
    size_t head = type_bytes + 1 > 127 ? 2 : 1, at = put_varint(payload, type_bytes + head);
    memcpy(payload + at, types, type_bytes);
    memcpy(payload + at + type_bytes, body, size);
    return at + type_bytes + size;
}

/* Spreads the rest of a payload over overflow pages in the file and in the log; returns the first page. */
static uint32_t put_chain(image *m, const unsigned char *rest, size_t size, flaw kind)
{
    uint64_t place =
        draw(m->ignores_log ? 1 : 4); /* 0: file; 1: log; 2: file, with other contents in the log; 3: any */
    size_t part = m->page_bytes - 4, links = (size + part - 1) / part, broken = links > 1 ? (size_t)draw(links - 1) : 0;
    uint32_t number[MOST_PAGES];
    bool is_far = place == 1 && draw(2) == 0; /* the log may hold any page */
    for (size_t i = 0; i < links; i++)
        number[i] = is_far ? (uint32_t)(1 + i + draw(UINT32_MAX / 256 - 8) * 256) | 1u << 31 >> draw(8) : add_page(m);
    for (size_t i = 0; i + 1 < links; i++) { /* in any order */
        size_t other = i + (size_t)draw(links - i);
        uint32_t swapped = number[i];
        number[i] = number[other];
        number[other] = swapped;
    }
    for (size_t i = 0; i < links; i++) {
        uint32_t next = i + 1 < links ? number[i + 1] : (uint32_t)draw(99);
        bool in_log = place == 1 || (place == 3 && draw(2) == 0);
        unsigned char *page = is_far ? NULL : m->page[number[i] - 1];
        if (place == 2 || m->ignores_log || (in_log && draw(2) == 0)) add_frame(m, number[i]); /* other contents */
        if (in_log) page = add_frame(m, number[i]);
        if (kind == BROKEN_CHAIN && i == broken && i + 1 < links) next = draw(2) == 0 ? 0 : 1000000;
        put_big(page, next, 4);
        memcpy(page + 4, rest + i * part, size - i * part < part ? size - i * part : part);
    }
    return kind == BROKEN_CHAIN && links == 1 ? 0 : number[0];
}

/* Adds a record as a cell on a page of its own, in the file or in the log. */
static void add_record(image *m, flaw kind)
{
    static unsigned char payload[MOST_CELL], cell[MOST_PAGE + 32];
    record r = {0};
    size_t usable = m->page_bytes,
           size = fill_record(&r, kind, MOST_TEXT < 6 * usable ? MOST_TEXT : 6 * usable, payload);
    size_t most = usable - 35, least = (usable - 12) * 32 / 255 - 23, local = size;
    if (size > most) {
        size_t wanted = least + (size - least) % (usable - 4);
        local = wanted <= most ? wanted : least;
    }
    if (kind == BROKEN_CHAIN && local == size) kind = NO_FLAW;
    uint64_t id = kind == NO_ID ? 0 : kind == NEGATIVE_ID ? (uint64_t)-r.id : (uint64_t)r.id;
    size_t bytes = put_varint(cell, size + (kind == LONG_PAYLOAD) - (kind == SHORT_PAYLOAD));
    bytes += put_varint(cell + bytes, id);
    memcpy(cell + bytes, payload, local);
    bytes += local;
    if (local < size) bytes += put_big(cell + bytes, put_chain(m, payload + local, size - local, kind), 4);
    bool in_log = draw(3) == 0;
    uint32_t number = add_page(m);
    unsigned char *page = in_log ? add_frame(m, number) : m->page[number - 1];
    size_t least_at = number == 1 ? 100 : 0, room = usable - least_at - bytes;
    size_t at = kind == CUT_CELL ? usable - bytes + 1 : least_at + (draw(3) == 0 ? room : (size_t)draw(room + 1));
    if (at > 0) page[at - 1] = 0; /* 0x80 before a number would be another form of it */
    memcpy(page + at, cell, bytes < usable - at ? bytes : usable - at);
    m->slack = in_log ? usable - 1 : usable - at - (kind == CUT_CELL ? bytes - 1 : bytes);
    record *list = in_log ? m->in_log : m->wanted;
    size_t *count = in_log ? &m->in_log_count : &m->wanted_count;
    if (kind == NO_FLAW && !(in_log && m->ignores_log))
        list[(*count)++] = r;
    else
        for (int i = 0; i < ST_MAX_WIDTH; i++) free(r.text[i]);
}

/* Writes the image, and cuts its last page. The log is 1: of other page sizes; 2: without a commit; 0 or 3: whole. */
static void write_image(const image *m, const char *path, uint64_t log_kind)
{
    char *log = NULL;
    size_t cut = draw(2) * (size_t)draw(m->slack + 1);
    assert_true(asprintf(&log, "%s-wal", path) > 0);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    for (size_t i = 0; i < m->page_count; i++)
        fwrite(m->page[i], 1, m->page_bytes - (i + 1 == m->page_count ? cut : 0), file);
    assert_int_equal(fclose(file), 0);
    unsigned char head[32], salt[8];
    for (size_t i = 0; i < sizeof head; i++) head[i] = (unsigned char)draw(256);
    put_big(head + 8, log_kind == 1 ? 2 * m->page_bytes : m->page_bytes, 4);
    memcpy(salt, head + 16, sizeof salt);
    file = fopen(log, "wb");
    assert_non_null(file);
    fwrite(head, 1, sizeof head, file);
    size_t commit = m->frame_count > 0 ? (size_t)draw(m->frame_count) : 0;
    for (size_t i = 0; i < m->frame_count + 2; i++) {
        unsigned char frame[24] = {0};
        bool is_old = i >= m->frame_count; /* frames of an earlier generation, with good contents */
        if (m->frame_count == 0) break;
        size_t from = is_old ? 0 : i;
        put_big(frame, m->frame_page[from], 4);
        if (log_kind != 2 && (i + 1 == m->frame_count || i == commit || is_old)) put_big(frame + 4, m->page_count, 4);
        memcpy(frame + 8, salt, sizeof salt);
        if (is_old) frame[8 + draw(8)] ^= 1;
        fwrite(frame, 1, sizeof frame, file);
        fwrite(m->frame[from], 1, m->page_bytes, file);
    }
    assert_int_equal(fclose(file), 0);
    free(log);
}

typedef struct search {
    const image *m;
    size_t found, stop_after;
} search;

static bool take(void *user, const st_table *table, int64_t id, const st_value *values)
{
    search *s = user;
    const image *m = s->m;
    if (s->found >= m->wanted_count + m->in_log_count) fail_msg("a record too many, with id %lld", (long long)id);
    const record *r = s->found < m->wanted_count ? &m->wanted[s->found] : &m->in_log[s->found - m->wanted_count];
    s->found++;
    if (table != r->table || id != r->id)
        fail_msg("record %zu: %s %lld instead of %s %lld", s->found, table->name, (long long)id, r->table->name,
                 (long long)r->id);
    for (int i = 0; i < table->width; i++) {
        char type = table->types[i];
        if (type == 'I') assert_true(values[i].whole == r->value[i].whole);
        if (type == 'R') assert_true(values[i].real == r->value[i].real);
        if (type != 'I' && type != 'R') {
            assert_int_equal(values[i].size_bytes, r->value[i].size_bytes);
            if (values[i].size_bytes > 0) assert_memory_equal(values[i].bytes, r->value[i].bytes, values[i].size_bytes);
        }
    }
    return s->found != s->stop_after;
}

static void free_image(image *m)
{
    for (size_t i = 0; i < m->page_count; i++) free(m->page[i]);
    for (size_t i = 0; i < m->frame_count; i++) free(m->frame[i]);
    for (size_t k = 0; k < RECORDS; k++)
        for (int i = 0; i < ST_MAX_WIDTH; i++) free(m->wanted[k].text[i]), free(m->in_log[k].text[i]);
}

/* The header of the first page tells the page size; a damaged header means 4,096 bytes. */
static void write_header(image *m, uint64_t kind)
{
    unsigned char *head = m->page[0];
    memcpy(head, "SQLite format 3", 16);
    put_big(head + 16, m->page_bytes == MOST_PAGE ? 1 : m->page_bytes, 2);
    static const uint16_t wrong_sizes[] = {0, 256, 768, 4097, 32767, 2};
    if (kind == 1) head[draw(16)] ^= (unsigned char)(1 << draw(8));
    if (kind == 1) put_big(head + 16, 1024, 2);
    if (kind == 2) put_big(head + 16, wrong_sizes[draw(6)], 2);
}

static void exactly_the_whole_records_are_found(void **state)
{
    store_fixture *f = *state;
    char *path = process_in_folder(f->folder, "image");
    for (uint64_t trial = 0; trial < 400; trial++) {
        static image m;
        m = (image){0};
        state_of_random = trial * 77 + 5;
        uint64_t header = draw(3), log_kind = draw(4);
        m.page_bytes = header == 0 ? (size_t)512 << draw(trial % 8 == 0 ? 8 : 5) : 4096;
        add_page(&m);
        write_header(&m, header);
        m.ignores_log = log_kind == 1 || log_kind == 2;
        for (size_t k = 0; k < 1 + (size_t)draw(RECORDS - 1) && m.page_count < MOST_PAGES / 3; k++)
            add_record(&m, (flaw)(draw(2) * draw(FLAWS)));
        search s = {.m = &m, .stop_after = draw(8) == 0 ? 1 + (size_t)draw(4) : 0};
        write_image(&m, path, log_kind);
        store_expect_ok(st_scan_pages(path, take, &s, &f->err), &f->err);
        size_t all = m.wanted_count + m.in_log_count;
        if (s.found != (s.stop_after != 0 && s.stop_after < all ? s.stop_after : all))
            fail_msg("trial %d: %zu of %zu records", (int)trial, s.found, all);
        free_image(&m);
    }
    free(path);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, store_fixture_set_up, store_fixture_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {CASE(exactly_the_whole_records_are_found)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
