/* chain.h — the pointwise operators that continue each root. */
#ifndef IR_PLAN_CHAIN_H
#define IR_PLAN_CHAIN_H

#include "plan/builder.h"

void pl_claim_chains(pl_builder *b);

#endif
