/* text.h — what the printer (text.c) and the parser (parse.c) of graphs share. The form, by example:
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
 * Values are numbered by their ids and carry name, type and known content. Constants stand before their first use,
 * inline up to IR_TEXT_INLINE elements, else by a hash of type and content; `unread` where there is no content. `_` is
 * an absent input or output, `?` an element type and `[*]` a shape that is not inferred. A node's name follows after @
 * where it is not its first output's, its spelling in the file after `as` where that is not the table's. Numbers with a
 * decimal point or an exponent are floats; a trailing f says that the nearest single-precision number is meant.
 */
#ifndef IR_TEXT_H
#define IR_TEXT_H

#include "ir/ops.h"

enum { IR_TEXT_INLINE = 16 };

/* Over element type, dims and bytes. The tensor has content. */
uint64_t ir_tensor_hash(const ir_tensor *tensor);

/* Names of operators and attributes that stand without quotes: letters, digits, `_` and `.`, no digit first. */
bool ir_text_is_word_char(char c);
bool ir_text_is_word(const char *text);

#endif
