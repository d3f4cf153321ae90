/* equal_blocks.h — finds the equal blocks (layers) of a job. */
#ifndef RT_EQUAL_BLOCKS_H
#define RT_EQUAL_BLOCKS_H

#include "mdot/mdot_predict.h"

/* Fills each operator's number of equal blocks. The operators are in blocks 1 to block_count, or in none (0). Returns
 * false if memory runs out. */
bool rt_compare_blocks(mdot_job_operator *operators, size_t count, uint32_t block_count);

#endif
