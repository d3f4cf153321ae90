/* graph_text.h — the text form of graphs, printed by graph_text.c and parsed by tests (tests/support/graph_parser.h):
 *
 *     graph "model.onnx" {
 *       length "sequence" <= 1024
 *       %0 "x" : f32[1,L,128] = input
 *       %1 "scale" : f32[] = constant [0.5]
 *       %2 "weight" : f32[128,512] = constant #9f3c6a0de51b7f42
 *       %3 "y" : f32[1,L,128] = Mul(%0, %1)
 *       %4 "shape" : i64[3] known [1, L, 128] = Shape(%3) @"/Shape" {start=0, end=3}
 *       %5 "a" : f32[1,L,64], _ = Split(%3) {axis=-1, num_outputs=2}
 *       %6 "z" : ?[*] = unknown "my.domain.Op"(%5, _)
 *       return %3, %4
 *     }
 *
 * Values are numbered by their ids and carry name, type and known content. Constants precede their first use. Up to
 * IR_TEXT_INLINE elements they are inline; larger ones are given by a hash of type and content, or as `unread` if the
 * content is missing. `_` is an absent input or output, `?` an unknown element type and `[*]` an unknown shape. A
 * node's name follows after @ if it differs from that of its first output. Its operator name in the file follows
 * after `as` if it differs from the table's. Numbers with a decimal point or an exponent are floats. A trailing f
 * denotes the nearest single-precision number.
 */
#pragma once

#include "ir/ops.h"

enum { IR_TEXT_INLINE = 16 };

/* A hash over element type, dims and bytes. The tensor must have content. */
uint64_t ir_tensor_hash(const ir_tensor *tensor);

/* Names of operators and attributes without quotes consist of letters, digits, `_` and `.`, and do not start with a
 * digit. */
bool ir_text_is_word_char(char c);
