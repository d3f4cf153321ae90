/* scan.h — words, numbers and types of the text form of graphs (text.h): what the parser is made of.
 *
 * A scanner stops at the first fault and keeps it: functions go on after one harmlessly, returning nothing of use, and
 * callers check where they loop or allocate. Faults name the line.
 */
#ifndef IR_SCAN_H
#define IR_SCAN_H

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
/* Both return false, so that a fault may read `return ir_scan_fail(...)`. */
bool ir_scan_fail(ir_scanner *s, const char *reason);
bool ir_scan_fail_memory(ir_scanner *s);
/* From the arena; NULL after a fault, and where memory runs out, which becomes one. */
void *ir_scan_allocate(ir_scanner *s, size_t count, size_t size);

/* The next character that is no space; NUL at the end. */
char ir_scan_peek(ir_scanner *s);
/* Takes `token` where it comes next: a mark, or a whole word. */
bool ir_scan_take(ir_scanner *s, const char *token);
/* The same, where anything else is a fault. */
bool ir_scan_expect(ir_scanner *s, const char *token);

/* "…" with \", \\ and \xhh; a name without quotes. NULL after a fault. */
const char *ir_scan_quoted(ir_scanner *s);
const char *ir_scan_word(ir_scanner *s);

/* 0 after a fault. A float may end in f: the nearest single-precision number. */
int64_t ir_scan_int(ir_scanner *s);
uint64_t ir_scan_unsigned(ir_scanner *s, int base);
double ir_scan_float(ir_scanner *s);
/* Whether the number that comes next is a float: has a point or an exponent, or is nan or inf. */
bool ir_scan_at_float(ir_scanner *s);

/* f32[2,L], ?[*]; [1, 2L+1] as what stands after `known`. */
ir_type ir_scan_type(ir_scanner *s);
const ir_known *ir_scan_known(ir_scanner *s);

#endif
