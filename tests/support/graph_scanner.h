/* graph_scanner.h — the scanner of graph_parser.c: words, numbers and types of the text form of graphs
 * (ir/graph_text.h).
 *
 * A scanner stops at the first error and keeps it. Later calls are harmless but return no useful result, so callers
 * check where they loop or allocate. Errors name the line.
 */
#pragma once

#include "ir/graph.h"

typedef struct ir_scanner {
    const char *at; /* NUL-terminated */
    const char *end;
    int line;
    ir_arena *arena;
    mdot_status status;
    mdot_error *err;
} ir_scanner;

bool ir_scan_ok(const ir_scanner *s);
/* Both return false, so an error can be reported by `return ir_scan_fail(...)`. */
bool ir_scan_fail(ir_scanner *s, const char *reason);
bool ir_scan_fail_memory(ir_scanner *s);
/* Allocates from the arena. NULL: an error occurred before, or memory is exhausted, which becomes the error. */
void *ir_scan_allocate(ir_scanner *s, size_t count, size_t size);

/* The next character other than a space; NUL at the end. */
char ir_scan_peek(ir_scanner *s);
/* Consumes `token` if it comes next: a mark, or a whole word. */
bool ir_scan_take(ir_scanner *s, const char *token);
/* Consumes `token`; anything else is an error. */
bool ir_scan_expect(ir_scanner *s, const char *token);

/* Read "…" with \", \\ and \xhh, and a name without quotes. NULL after an error. */
const char *ir_scan_quoted(ir_scanner *s);
const char *ir_scan_word(ir_scanner *s);

/* Return 0 after an error. A float may end in f: the nearest single-precision number. */
int64_t ir_scan_int(ir_scanner *s);
uint64_t ir_scan_unsigned(ir_scanner *s, int base);
double ir_scan_float(ir_scanner *s);
/* Is the next number a float: does it have a point or an exponent, or is it nan or inf? */
bool ir_scan_at_float(ir_scanner *s);

/* Read a type, f32[2,L] or ?[*], and the content [1, 2L+1] behind `known`. */
ir_type ir_scan_type(ir_scanner *s);
const ir_known *ir_scan_known(ir_scanner *s);
