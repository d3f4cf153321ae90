/* mask_spellings.h — attention with a mask in each spelling that models use, for tests of the scores' numbers. */
#pragma once

enum { MASK_SPELLINGS = 20, MASK_CASES = 18, MASK_TEXT_BYTES = 2048 };

/* Writes the graph as notation (graph_notation.h). Queries and keys are whole numbers, so that the scores are exact in
 * f32 whatever the order of additions. Two heads: in the first, every key is masked, except if the number is -inf. A
 * case is a masked number (-1e4 to -inf) with a magnitude of the scores (1 to 8192). */
void write_masked_attention(int spelling, int number_and_magnitude, char text[static MASK_TEXT_BYTES]);
